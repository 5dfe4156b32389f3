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
