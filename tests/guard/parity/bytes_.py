#: literals-and-methods
b = b"Hello\x00\xff"
print(b, b[0], b[1:3], b.upper(), b.find(b"l"), b.hex(), bytes.fromhex("48 69"), list(b"abc"), b"a" + b"b", b"ab" * 2, b"l" in b, 72 in b)
#: encode-decode
s = "héllo €"
for enc in ("utf-8", "utf-16-le", "latin-1", "ascii"):
    try:
        e = s.encode(enc)
        print(enc, e, e.decode(enc) == s)
    except UnicodeEncodeError as x:
        print(enc, x.reason)
print(s.encode("ascii", "ignore"), s.encode("ascii", "replace"), s.encode("ascii", "xmlcharrefreplace"), b"\xffa".decode("utf-8", "replace"))
#: constructors
print(bytes(3), bytes([1, 2]), bytes("é", "utf-8"), bytes(b"x"), bytes(range(3)), bytearray(b"ab"), bytearray(2))
#: bytearray-mutation
b = bytearray(b"abc")
b[0] = 65
b.append(33)
b.extend(b"xy")
b[1:2] = b"__"
del b[-1]
b.insert(0, 42)
print(b, b.pop(), bytes(b), b.decode(), len(b))
#: bytes-formatting
print(b"%d %s %x" % (5, b"z", 255), b"-".join([b"a", b"b"]), b"a,b".split(b","), b" x ".strip(), b"abc".replace(b"b", b"B"))
#: int-conversions
print((258).to_bytes(2, "big"), int.from_bytes(b"\x01\x02", "little"), (-2).to_bytes(2, "big", signed=True), (5).to_bytes())
#: struct
#: needs: struct
import struct
p = struct.pack(">IhB4s", 1, -2, 3, b"abcd")
print(p, struct.unpack(">IhB4s", p), struct.calcsize("<Qd"))
#: base64-and-hashlib
#: needs: base64, hashlib
import base64, hashlib
e = base64.b64encode(b"any data?")
print(e, base64.b64decode(e), base64.urlsafe_b64encode(b"\xfb\xff"), base64.b32encode(b"x"), hashlib.md5(b"a").hexdigest(), hashlib.sha256(b"abc").hexdigest()[:16], hashlib.new("sha1", b"z").hexdigest()[:8])
#: xor-cipher
def xor(data, key):
    return bytes(d ^ key[i % len(key)] for i, d in enumerate(data))

c = xor(b"attack at dawn", b"key")
print(c.hex(), xor(c, b"key"))
#: crc-by-hand
#: needs: zlib
import zlib
def crc(data):
    c = 0xFFFFFFFF
    for b in data:
        c ^= b
        for _ in range(8):
            c = (c >> 1) ^ (0xEDB88320 & -(c & 1))
    return c ^ 0xFFFFFFFF

print(hex(crc(b"hello")), crc(b"hello") == zlib.crc32(b"hello"))
#: bytes-immutable
#: raises: TypeError
b = b"abc"
b[0] = 1
#: bytes-str-mixing
#: raises: TypeError
b"a" + "b"
#: utf8-by-hand
def utf8(cp):
    if cp < 0x80: return bytes([cp])
    if cp < 0x800: return bytes([0xC0 | cp >> 6, 0x80 | cp & 63])
    if cp < 0x10000: return bytes([0xE0 | cp >> 12, 0x80 | cp >> 6 & 63, 0x80 | cp & 63])
    return bytes([0xF0 | cp >> 18, 0x80 | cp >> 12 & 63, 0x80 | cp >> 6 & 63, 0x80 | cp & 63])

print(all(utf8(ord(c)) == c.encode() for c in "aé€🎉"))
#: hmac-and-secrets-compare
#: needs: hmac, hashlib
import hmac, hashlib
print(hmac.new(b"k", b"m", hashlib.sha256).hexdigest()[:12], hmac.compare_digest(b"a", b"a"))
#: binascii
#: needs: binascii
import binascii
print(binascii.hexlify(b"hi"), binascii.unhexlify("6869"), binascii.crc32(b"x"))
