"""Decoding of HTML as browsers do.

By the byte order mark, then the header, then the meta element, then a guess.
"""

import codecs
import re

# Label → codec. Only these are looked up: Python also has codecs (punycode, unicode_escape, …) that
# no page may choose. Like browsers, we read several labels as the larger set that pages really use.
_CODECS = {
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8",
    "utf-16-le": "utf-16 utf-16le",
    "utf-16-be": "utf-16be",
    "cp1252": "windows-1252 cp1252 iso-8859-1 iso8859-1 latin1 latin-1 l1 ascii us-ascii",
    "cp1250": "windows-1250 cp1250",
    "cp1251": "windows-1251 cp1251",
    "cp1253": "windows-1253 cp1253",
    "cp1254": "windows-1254 cp1254 iso-8859-9 latin5",
    "cp1255": "windows-1255 cp1255",
    "cp1256": "windows-1256 cp1256",
    "cp1257": "windows-1257 cp1257",
    "cp1258": "windows-1258 cp1258",
    "cp874": "windows-874 iso-8859-11 tis-620",
    "iso8859-2": "iso-8859-2 latin2",
    "iso8859-3": "iso-8859-3",
    "iso8859-4": "iso-8859-4",
    "iso8859-5": "iso-8859-5",
    "iso8859-6": "iso-8859-6",
    "iso8859-7": "iso-8859-7",
    "iso8859-8": "iso-8859-8 iso-8859-8-i",
    "iso8859-10": "iso-8859-10",
    "iso8859-13": "iso-8859-13",
    "iso8859-14": "iso-8859-14",
    "iso8859-15": "iso-8859-15",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "koi8-r koi8",
    "koi8-u": "koi8-u",
    "cp866": "ibm866 cp866",
    "mac-roman": "macintosh",
    "mac-cyrillic": "x-mac-cyrillic",
    "gb18030": "gb18030 gbk gb2312 x-gbk",
    "big5hkscs": "big5 big5-hkscs",
    "euc_jp": "euc-jp",
    "cp932": "shift_jis shift-jis sjis windows-31j ms932",
    "iso2022_jp": "iso-2022-jp",
    "cp949": "euc-kr ks_c_5601-1987 korean windows-949",
}
_BY_LABEL = {label: codec for codec, labels in _CODECS.items() for label in labels.split()}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META = re.compile(
    rb"<meta[^>]{0,512}?charset\s{0,8}=\s{0,8}[\"']?\s{0,8}([a-z0-9_-]{1,40})", re.IGNORECASE
)


def decode_html(body: bytes, declared: str | None, *, whole: bool = True) -> str:
    """Decode a page. Never fails: unreadable bytes become U+FFFD.

    `whole` is False for a truncated page, which may end within a character.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return _decode_as(body.removeprefix(mark), codec, whole)
    stated = _BY_LABEL.get((declared or "").strip().lower()) or _find_meta_charset(body)
    if stated:
        return _decode_as(body, stated, whole)
    try:
        return codecs.getincrementaldecoder("utf-8")("strict").decode(body, whole)
    except UnicodeDecodeError:
        return _decode_as(body, "cp1252", whole)


def _decode_as(body: bytes, codec: str, whole: bool) -> str:
    return codecs.getincrementaldecoder(codec)("replace").decode(body, whole)


def _find_meta_charset(body: bytes) -> str | None:
    found = _META.search(body[:1024])
    codec = _BY_LABEL.get(found[1].decode("ascii").lower()) if found else None
    # A page whose meta element can be read is not UTF-16.
    return "utf-8" if codec and codec.startswith("utf-16") else codec
