/** Bounds of what a client may send; the engine has the first two, with these numbers, before and after login. */
export interface CommandLimits {
  /** Most arguments of one command. */
  readonly maxArguments: number
  /** Longest single argument, bytes. */
  readonly maxArgumentBytes: number
  /** Longest command typed by hand, a line without lengths, bytes. */
  readonly maxInlineBytes: number
  /** Longest whole command, bytes. A longer one is skipped and told as `oversize`; the connection goes on. */
  readonly maxRequestBytes: number
  /** From this length on an argument may be passed on as it comes (`large`), bytes. */
  readonly largeArgumentBytes: number
  /** How a count or length above the first two is called in the error. */
  readonly excessWord: 'unauthenticated' | 'invalid'
}

/** What a client may send before it has logged in: enough for HELLO with AUTH and SETNAME. */
export const LIMITS_BEFORE_LOGIN: CommandLimits = {
  maxArguments: 10,
  maxArgumentBytes: 16_384,
  maxInlineBytes: 16_384,
  maxRequestBytes: 1_048_576,
  largeArgumentBytes: Number.POSITIVE_INFINITY,
  excessWord: 'unauthenticated',
}

/** What a client may send after login. */
export function limitsAfterLogin(maxRequestBytes: number): CommandLimits {
  return {
    maxArguments: 2 ** 31 - 1,
    maxArgumentBytes: 512 * 1024 * 1024,
    maxInlineBytes: 65_536,
    maxRequestBytes,
    largeArgumentBytes: 1024 * 1024,
    excessWord: 'invalid',
  }
}

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
