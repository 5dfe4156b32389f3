import { describe, expect, it } from 'vitest'
import { findInternals, streamInternals } from './stream-internals.js'

const refuse = (): never => {
  throw new Error('Access to this API has been restricted')
}

describe('what Node keeps of streams', () => {
  it('is found in the Node that runs here', () => {
    expect(streamInternals).toBeDefined()
  })

  it.each([
    ['has no such members', {}],
    ['refuses to show them', { binding: refuse }],
    ['shows something else', { binding: () => ({ WriteWrap: class {}, streamBaseState: new Int32Array(5) }) }],
    ['shows nothing', { binding: () => undefined }],
  ])('is done without where a process %s', (_what, host) => {
    expect(findInternals(host)).toBeUndefined()
  })
})
