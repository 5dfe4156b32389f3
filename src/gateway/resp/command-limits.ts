/** Limits of the commands of a client. The first two are the engine's own, before and after login. */
export interface CommandLimits {
  /** Most arguments of one command. */
  readonly maxArguments: number
  /** Longest single argument, bytes. */
  readonly maxArgumentBytes: number
  /** Longest inline command, bytes. */
  readonly maxInlineBytes: number
  /** Longest whole command, bytes. A longer one is skipped and reported as `oversize`; the connection stays open. */
  readonly maxRequestBytes: number
  /** An argument of this length or more may be streamed (`large`), bytes. */
  readonly largeArgumentBytes: number
  /** The word for a count or length above the first two limits in the error. */
  readonly excessWord: 'unauthenticated' | 'invalid'
}

/** Limits before login: enough for HELLO with AUTH and SETNAME. */
export const LIMITS_BEFORE_LOGIN: CommandLimits = {
  maxArguments: 10,
  maxArgumentBytes: 16_384,
  maxInlineBytes: 16_384,
  maxRequestBytes: 1_048_576,
  largeArgumentBytes: Number.POSITIVE_INFINITY,
  excessWord: 'unauthenticated',
}

/** Limits after login. */
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
 * The result of the command parser.
 *
 * - `frame`: one whole command; see `frameBuffer` and the fields after it.
 * - `more`: the next chunk is needed.
 * - `oversize`: a command longer than the limit was skipped; `actualBytes` is its length.
 * - `broken`: the bytes are no command; `problem` is the engine's wording. Nothing after them can be parsed.
 * - `large`: an argument of a command, not its name or the first argument, is so long that it may be streamed. The frame has
 *   the bytes before that argument; `actualBytes` is the length of the command as far as it is known. Unless `stream` is
 *   called now, the command is gathered and returned as a `frame`.
 * - `empty`: many empty commands were skipped, and there may be more.
 * - `part`, `last`: the frame is the next piece of a streamed command; after `last` it is complete.
 */
export type ParseOutcome = 'frame' | 'more' | 'empty' | 'oversize' | 'broken' | 'large' | 'part' | 'last'
