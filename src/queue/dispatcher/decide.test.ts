import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { toHeaderMap } from '../headers.js'
import type { AttemptOutcome } from '../types.js'
import { backoffMs, decideNext, defaultBackoffMs, retryAfterMs } from './decide.js'

const NOW = Date.UTC(2026, 0, 1)

const answered = (status: number, headers: Record<string, string> = {}): AttemptOutcome => ({
  kind: 'answered',
  startedAt: NOW,
  finishedAt: NOW,
  response: { status, headers: toHeaderMap(headers), body: new Uint8Array(), truncated: false },
})
const unanswered: AttemptOutcome = { kind: 'unanswered', startedAt: NOW, finishedAt: NOW, error: 'refused' }
const forbidden: AttemptOutcome = { ...unanswered, isRefused: true }

describe('the default backoff', () => {
  it('is e^(2.5 n) seconds, at most a day', () => {
    expect([0, 1, 2, 3, 4, 9].map((retried) => Math.floor(defaultBackoffMs(retried) / 1_000))).toEqual([
      12, 148, 1_808, 22_026, 86_400, 86_400,
    ])
  })

  it('is replaced by an expression, whose result is clamped to between 0 and a day', () => {
    expect(backoffMs('pow(2, retried) * 1000', 3)).toBe(8_000)
    expect(backoffMs('0 - 5', 0)).toBe(0)
    expect(backoffMs('exp(1000)', 0)).toBe(86_400_000)
    expect(backoffMs('0 / 0', 0)).toBe(defaultBackoffMs(0))
  })
})

describe('the decision after an outcome', () => {
  const message = { maxRetries: 3, retried: 0, config: { retryDelay: '1000' } }

  it.each([
    ['200', answered(200), { kind: 'delivered' }],
    ['299', answered(299), { kind: 'delivered' }],
    ['300', answered(300), { kind: 'retry', at: NOW + 1_000 }],
    ['a redirect', answered(302, { location: 'http://x' }), { kind: 'retry', at: NOW + 1_000 }],
    ['500', answered(500), { kind: 'retry', at: NOW + 1_000 }],
    ['no response', unanswered, { kind: 'retry', at: NOW + 1_000 }],
    ['489 alone', answered(489), { kind: 'retry', at: NOW + 1_000 }],
    [
      '489 with its header',
      answered(489, { 'upstash-nonretryable-error': 'true' }),
      { kind: 'failed', reason: 'refused' },
    ],
    [
      'the header of 489 alone',
      answered(500, { 'upstash-nonretryable-error': 'true' }),
      { kind: 'retry', at: NOW + 1_000 },
    ],
    ['a target that is refused', forbidden, { kind: 'failed', reason: 'refused' }],
    ['Retry-After', answered(429, { 'retry-after': '7' }), { kind: 'retry', at: NOW + 7_000 }],
  ])('after %s', (_name, outcome, decision) => {
    expect(decideNext(message, outcome, NOW)).toEqual(decision)
  })

  it('is a failure when no retry is left, also when the destination asks for one', () => {
    const last = { ...message, retried: 3 }
    expect(decideNext(last, unanswered, NOW)).toEqual({ kind: 'failed', reason: 'exhausted' })
    expect(decideNext(last, answered(429, { 'retry-after': '1' }), NOW)).toEqual({
      kind: 'failed',
      reason: 'exhausted',
    })
    expect(decideNext(last, answered(204), NOW)).toEqual({ kind: 'delivered' })
  })
})

describe('the retry delay that a response asks for', () => {
  it.each([
    [{ 'Retry-After': '120' }, 120_000],
    [{ 'Retry-After': '0' }, 0],
    [{ 'Retry-After': '10s' }, 10_000],
    [{ 'X-RateLimit-Reset-Requests': '6m5s' }, 365_000],
    [{ 'X-RateLimit-Reset-Tokens': '1.5s' }, 1_500],
    [{ 'X-RateLimit-Reset': '250ms' }, 250],
    [{ 'Retry-After': '1.25' }, 1_250],
    [{ 'X-RateLimit-Reset': '1.25s' }, 1_250],
    [{ 'X-RateLimit-Reset': '1500µs' }, 2],
    [{ 'Retry-After': '1d' }, 86_400_000],
    [{ 'Retry-After': '10s or so' }, undefined],
    [{ 'Retry-After': 'in 10s' }, undefined],
    [{ 'Retry-After': new Date(NOW + 30_000).toUTCString() }, 30_000],
    [{ 'Retry-After': new Date(NOW - 30_000).toUTCString() }, 0],
    [{ 'Retry-After': '2d' }, undefined],
    [{ 'Retry-After': '2d', 'X-RateLimit-Reset': '5' }, 5_000],
    [{ 'Retry-After': 'soon' }, undefined],
    [{}, undefined],
  ])('is, for %j, %s', (headers, expected) => {
    expect(retryAfterMs(toHeaderMap(headers), NOW)).toBe(expected)
  })

  it('is that of an old date, which names no zone, wherever the server is', () => {
    vi.stubEnv('TZ', 'America/New_York')
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(retryAfterMs(toHeaderMap({ 'Retry-After': 'Thu Jan  1 00:00:30 2026' }), NOW)).toBe(30_000)
  })
})
