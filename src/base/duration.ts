const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const WHOLE = /^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/
const PART = /(\d+(?:\.\d+)?)(ms|[smhd])/g

/**
 * Reads a duration such as `10s`, `1d10h30m`, `1.5h` or `250ms`.
 * @returns whole milliseconds, or `undefined` when the text is not a duration or is too large to be exact.
 */
export function parseDuration(text: string): number | undefined {
  if (!WHOLE.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(PART)) total += Number(amount) * (UNIT_MS[unit ?? ''] ?? Number.NaN)
  const ms = Math.round(total)
  return Number.isSafeInteger(ms) ? ms : undefined
}

/** Writes milliseconds as people read them: `1d2h`, `90s` becomes `1m30s`, zero is `0s`. */
export function formatDuration(ms: number): string {
  let rest = Math.max(0, Math.round(ms))
  if (rest === 0) return '0s'
  const parts: string[] = []
  for (const unit of ['d', 'h', 'm', 's', 'ms']) {
    const size = UNIT_MS[unit] ?? 1
    const amount = Math.floor(rest / size)
    if (amount > 0) parts.push(`${amount}${unit}`)
    rest -= amount * size
  }
  return parts.join('')
}
