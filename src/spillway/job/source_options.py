"""The options of Spark's file sources, so that a misspelt one is not ignored, as Spark would do.

Names are compared without case, as in Spark. Lists are those of Spark 4.3, checked against it by a test. A
name with a dot is a setting of Hadoop and passes; so do all options of formats that are not listed here.
"""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from spillway.errors import SourceError

CLOSE = 0.8
"""How much a name must be like a known one to be taken for a misspelling; below, it is only ignored."""

_FILES = (
    "archivePathFilter basePath ignoreCorruptFiles ignoreInvalidPartitionPaths ignoreMissingFiles "
    "ignoredPathSegmentRegex modifiedAfter modifiedBefore path pathGlobFilter paths recursiveFileLookup "
    "timeZone"
)
STREAM_OPTIONS = (
    "cleanSource discardCachedInputRatio fileNameOnly latestFirst maxBytesPerTrigger maxCachedFiles "
    "maxFileAge maxFilesPerTrigger sourceArchiveDir"
)
_TEXT = (
    "charset columnNameOfCorruptRecord compression dateFormat encoding locale mode multiLine "
    "samplingRatio singleVariantColumn timeFormat timestampFormat timestampNTZFormat"
)
_CSV = (
    "charToEscapeQuoteEscaping codec columnPruning comment delimiter emptyValue "
    "enableDateTimeParsingFallback enforceSchema escape escapeQuotes extension header "
    "ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace inferSchema inputBufferSize lineSep "
    "maxCharsPerColumn maxColumns nanValue negativeInf nullValue positiveInf preferDate quote quoteAll "
    "sep unescapedQuoteHandling"
)
_JSON = (
    "allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros "
    "allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames dropFieldIfAllNull "
    "enableDateTimeParsingFallback explodeEmbeddedArray ignoreNullFields inferTimestamp lineSep "
    "maxNestingDepth maxNumLen maxStringLen prefersDecimal pretty primitivesAsString sortKeys "
    "useUnsafeRow writeNonAsciiCharacterAsCodePoint"
)
_XML = (
    "arrayElementName attributePrefix declaration excludeAttribute ignoreNamespace "
    "ignoreSurroundingSpaces indent inferSchema nullValue preferDate prefersDecimal rootTag rowTag "
    "rowValidationXSDPath useLegacyXMLParser validateName valueTag wildcardColName"
)
_AVRO = (
    "avroSchema avroSchemaUrl compression datetimeRebaseMode enableStableIdentifiersForUnionType "
    "ignoreExtension mode positionalFieldMatching recordName recordNamespace recursiveFieldMaxDepth "
    "stableIdentifierPrefixForUnionType"
)

_INSIDE = frozenset({"ignorecorruptfiles", "ignoremissingfiles", "timezone"})

OPTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        name: frozenset(" ".join((_FILES, STREAM_OPTIONS, *own)).split())
        for name, own in {
            "csv": (_TEXT, _CSV),
            "json": (_TEXT, _JSON),
            "xml": (_TEXT, _XML),
            "parquet": ("compression datetimeRebaseMode int96RebaseMode mergeSchema",),
            "orc": ("compression mergeSchema",),
            "text": ("compression encoding lineSep wholetext",),
            "avro": (_AVRO,),
        }.items()
    }
)
"""By format: of files and of streams of files, because commands share sources; and those for writing."""


def format_options(source_format: str) -> frozenset[str]:
    """What a format's options say about the inside of files, not about which files there are; lower case."""
    listing = frozenset(f"{_FILES} {STREAM_OPTIONS}".lower().split()) - _INSIDE
    return frozenset(name.lower() for name in OPTIONS.get(source_format.lower(), ())) - listing


def ignored_options(source_format: str, options: Iterable[str], where: str) -> list[str]:
    """The options that Spark would ignore; a `SourceError` if one of them looks misspelt."""
    known = {name.lower(): name for name in OPTIONS.get(source_format.lower(), ())}
    unknown = [name for name in options if known and "." not in name and name.lower() not in known]
    for name in unknown:
        close = difflib.get_close_matches(name.lower(), known, 1, CLOSE)
        if close:
            raise SourceError(
                f"{where} options: {source_format} has no option {name}; did you mean {known[close[0]]}?"
            )
    return unknown
