import { describe, expect, it } from 'vitest'
import { stepBytesOf } from './reports.js'

/** The step as SDKs send it. */
const sent = (body: Uint8Array, headers: Record<string, string[]>) => {
  const out = JSON.stringify({ status: 200, body: Buffer.from(body).toString('latin1'), header: headers })
  return Buffer.byteLength(JSON.stringify({ stepId: 1, stepName: 'call', stepType: 'Call', out, concurrent: 1 }))
}

describe('the size of the response of a call as a step', () => {
  it('matches what an SDK sends, for all bytes', () => {
    const headers = { 'X-A': ['"quoted"'] }
    const all = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const bodies = [new Uint8Array(), all, Buffer.from('{"a":"\n\\"}'), new Uint8Array(1_000), Buffer.from('köln')]
    for (const body of bodies) {
      const extra = stepBytesOf(body, headers) - sent(body, headers)
      expect(extra).toBeGreaterThanOrEqual(0)
      expect(extra).toBeLessThanOrEqual(4 * 1024)
    }
  })
})
