"""How the journal records relocation in an epoch: begun, refused, loaded, completed, abandoned."""

from typing import Any

from spillway.manager.relocation import Decision, MoveInProgress, Refusal, RelocationStep
from spillway.model import members
from spillway.policy.placement import ForcedSpill, Move


def relocation_entry(decision: Decision, step: RelocationStep) -> dict[str, Any]:
    return {
        "begun": [_begun_entry(one) for one in decision.begun],
        "forced_spills": [_spill_entry(spill) for spill in decision.spills],
        "refused": [_refusal_entry(refusal) for refusal in decision.refused],
        "postponed": sorted(decision.relieved),
        "loads": [
            {"number": load.number, "sender": load.sender, "receiver": load.receiver, "bytes": load.bytes}
            for load in step.loads
        ],
        "switched": [_begun_entry(one) for one in step.completed],
        "abandoned": [
            {"number": one.number, "groups": list(members(one.groups)), "reason": one.reason}
            for one in step.abandoned
        ],
    }


def _begun_entry(one: MoveInProgress) -> dict[str, Any]:
    return {"number": one.number, **_move_entry(one.move)}


def _move_entry(move: Move) -> dict[str, Any]:
    return {
        "groups": list(members(move.groups)),
        "sender": move.sender,
        "receiver": move.receiver,
        "bytes": move.bytes,
        "makes_room": move.makes_room,
        "reason": move.reason,
    }


def _spill_entry(spill: ForcedSpill) -> dict[str, Any]:
    return {
        "processor": spill.processor,
        "groups": list(members(spill.groups)),
        "bytes": spill.bytes,
        "reason": spill.reason,
    }


def _refusal_entry(refusal: Refusal) -> dict[str, Any]:
    one = refusal.suggestion
    suggestion = _move_entry(one) if isinstance(one, Move) else _spill_entry(one)
    return {"suggestion": suggestion, "reason": refusal.reason}
