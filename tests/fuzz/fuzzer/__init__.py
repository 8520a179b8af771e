"""What comes from inside the wall, made wrong in every way there is time for, and read as the host reads it.

The invariant. For any bytes, in any order and cut anywhere:

1. Reading gives a message, a value or text that the tables allow, of the types they declare, or raises `ProtocolError`
   (the wire) or `MalformedValue` (values). Nothing else is raised.
2. It ends: after at most 250 ms of processor time and 100 µs more for each byte.
3. It takes at most 2 MB of memory and 320 bytes more for each byte; a request under way and what shows a cell, 8 MB
   and 1,000.
4. Nothing is done but reading: no code is compiled or run, no module but numpy and tzdata imported, no file opened but
   a time zone's, no process, socket or thread made. CPython's auditing tells; what `border` does not allow is a break.
5. What was read can be written again, and reads the same. What is read does not depend on where a stream was cut.
6. A message is heard only where the table of states allows it, and a reply only by the request it names. A request has
   one end, after which nothing is told of it, and no more text than its limit and half as much.
7. What is shown to a person holds no markup, script, address, control character or character without a shape that
   came from inside: the page, the terminal, text made inert. A notebook holds no output that is a script.

`python -m fuzzer` looks for bytes that break it, led by which lines of the readers they reach; `make fuzz` runs it.
"""
