/** Position and unit of the timeout of blocking commands. All other commands have it as the last argument, in seconds. */
const SECONDS_AT_FIRST = new Set(['BLMPOP', 'BZMPOP'])
const MS_AT_LAST = new Set(['WAIT', 'WAITAOF'])
const MS_BEHIND_BLOCK = new Set(['XREAD', 'XREADGROUP'])
const MAX_BLOCK_MS = 86_400_000

/**
 * The timeout of a blocking command.
 * @param args all words of the command, with the name.
 * @returns milliseconds; `undefined` when it has no timeout or one of more than a day, or when the engine refuses it.
 */
export function blockTimeoutMs(name: string, args: readonly Buffer[]): number | undefined {
  const ms = MS_BEHIND_BLOCK.has(name)
    ? numberAt(args, 1 + args.findIndex((arg) => arg.length === 5 && /^block$/i.test(arg.toString())))
    : MS_AT_LAST.has(name)
      ? numberAt(args, args.length - 1)
      : 1_000 * numberAt(args, SECONDS_AT_FIRST.has(name) ? 1 : args.length - 1)
  return ms > 0 && ms <= MAX_BLOCK_MS ? ms : undefined
}

/** `NaN` for a word that is no number. */
function numberAt(args: readonly Buffer[], index: number): number {
  const word = args[index]
  return word === undefined || word.length === 0 || word.length > 32 ? Number.NaN : Number(word.toString())
}
