/**
 * What a parser of commands finds.
 *
 * - `frame`: one whole command; see `frameBuffer` and its neighbours.
 * - `more`: the next chunk is needed.
 * - `oversize`: a command longer than the limit went by; `actualBytes` is its length.
 * - `broken`: the bytes are no command; `problem` is the engine's wording. Nothing after them can be understood.
 * - `large`: a command is coming of which an argument, not its name or the one behind that, is so long that it may be
 *   passed on as it comes. The frame is what stands before that argument, `actualBytes` is the length of the command as
 *   far as it is known. Unless `stream` is called now, the command is gathered and answered as a frame in the end.
 * - `empty`: many commands of nothing went by, and there may be more.
 * - `part`, `last`: the next piece of a command that is streamed stands in the frame; with `last` it is complete.
 */
export type ParseOutcome = 'frame' | 'more' | 'empty' | 'oversize' | 'broken' | 'large' | 'part' | 'last'
