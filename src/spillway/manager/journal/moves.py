"""How the journal records relocation in an epoch: begun, refused, loaded, completed, abandoned."""

from typing import Any

from spillway.manager.relocation import Decision, MoveInProgress, MovesStep, Refusal
from spillway.model import members
from spillway.policy.placement import ForcedSpill, Move


def relocation_entry(decision: Decision, step: MovesStep) -> dict[str, Any]:
    return {
        "begun": [_moving_entry(moving) for moving in decision.begun],
        "forced_spills": [_spill_entry(spill) for spill in decision.spills],
        "refused": [_refusal_entry(refusal) for refusal in decision.refused],
        "postponed": sorted(decision.relieved),
        "loads": [
            {"number": load.number, "sender": load.sender, "receiver": load.receiver, "bytes": load.bytes}
            for load in step.loads
        ],
        "switched": [_moving_entry(moving) for moving in step.completed],
        "abandoned": [
            {"number": part.number, "groups": list(members(part.groups)), "reason": part.reason}
            for part in step.abandoned
        ],
    }


def _moving_entry(moving: MoveInProgress) -> dict[str, Any]:
    return {"number": moving.number, **_move_entry(moving.move)}


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
    suggestion = refusal.suggestion
    entry = _move_entry(suggestion) if isinstance(suggestion, Move) else _spill_entry(suggestion)
    return {"suggestion": entry, "reason": refusal.reason}
