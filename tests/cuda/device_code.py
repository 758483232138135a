"""Reads the device code in what nvcc made: PTX, and machine code with what it needs to run.

Neither the container (fatbin) nor the attributes of machine code (cubin, an ELF file) are documented
by NVIDIA; ptx.py's planted violations show that this reader still understands them.
"""
import collections
import struct

# `shared` and `frame` are bytes; `code` are instructions of 16 bytes each.
Kernel = collections.namedtuple("Kernel", "architecture name registers shared frame code")

_CONTAINER = struct.pack("<IHH", 0xBA55ED50, 1, 16)  # magic number, version, size of its header
_PTX, _CUBIN = 1, 2
_REGISTERS, _FRAME = 0x2F, 0x11  # attributes
_RESERVED = 1024  # bytes of shared memory that the driver takes from sm_90 on


def _images(data):
    """Yields (kind, architecture, bytes) of each image."""
    at = 0
    while (at := data.find(_CONTAINER, at)) >= 0:
        image = at + len(_CONTAINER) + 8
        at = image + struct.unpack_from("<Q", data, image - 8)[0]
        while image < at:
            kind, _, header, size = struct.unpack_from("<HHIQ", data, image)
            architecture = struct.unpack_from("<I", data, image + 28)[0]
            yield kind, str(architecture), data[image + header : image + header + size]
            image += header + size


def _sections(elf):
    """Yields (name, symbol or other number, size, bytes) of each section of a cubin."""
    begin = struct.unpack_from("<Q", elf, 40)[0]
    size, count, of_names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, begin + i * size) for i in range(count)]
    names = headers[of_names][4]
    for name, _, _, _, offset, length, _, info, _, _ in headers:
        name = elf[names + name : elf.index(b"\0", names + name)].decode()
        yield name, info, length, elf[offset : offset + length]


def _attributes(data):
    """Yields (attribute, symbol, value) of those attributes that are a number for each kernel."""
    at = 0
    while at < len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:  # else the value lies in the place of the size
            if size == 8:
                yield attribute, *struct.unpack_from("<II", data, at)
            at += size


def _kernels_of(architecture, cubin):
    code, shared, numbers = {}, {}, {}
    for name, info, size, data in _sections(cubin):
        if name.startswith(".text."):
            code[name[len(".text.") :]] = (info & 0xFFFFFF, data)
        elif name.startswith(".nv.shared.") and int(architecture) >= 90:
            shared[name[len(".nv.shared.") :]] = size - _RESERVED
        elif name.startswith(".nv.shared."):
            shared[name[len(".nv.shared.") :]] = size
        elif name == ".nv.info":
            numbers = {(what, symbol): value for what, symbol, value in _attributes(data)}
    for name, (symbol, data) in code.items():
        if (_REGISTERS, symbol) in numbers:
            instructions = list(struct.iter_unpack("<QQ", data))
            yield Kernel(
                architecture,
                name,
                numbers[_REGISTERS, symbol],
                shared.get(name, 0),
                numbers[_FRAME, symbol],
                instructions,
            )


def ptx(path):
    """Returns (architecture, text) of each translation unit."""
    images = _images(path.read_bytes())
    return [(arch, data.rstrip(b"\0").decode()) for kind, arch, data in images if kind == _PTX]


def kernels(path):
    """Returns all kernels, for each architecture."""
    images = [image for image in _images(path.read_bytes()) if image[0] == _CUBIN]
    return [kernel for _, arch, cubin in images for kernel in _kernels_of(arch, cubin)]


def count_loads(kernel, opcode):
    """Returns how many loads of 16 bytes at once there are: opcode LDG or LDS."""
    wide = 6
    return sum(low & 0x1FF == opcode and high >> 9 & 7 == wide for low, high in kernel.code)


LDG, LDS, _FFMA = 0x181, 0x184, 0x023  # without the bits that say where operands lie


def densest_ffma(kernel, window=64):
    """Returns the share, in %, of FFMA in the neighbouring instructions that have most of them."""
    is_ffma = [low & 0x1FF == _FFMA for low, _ in kernel.code]
    most = count = sum(is_ffma[:window])
    for entering, leaving in zip(is_ffma[window:], is_ffma):
        count += entering - leaving
        most = max(most, count)
    return 100 * most // window
