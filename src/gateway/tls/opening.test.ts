import { Duplex } from 'node:stream'
import { expect, it } from 'vitest'
import { systemClock } from '../../base/index.js'
import { createLogger } from '../../telemetry/index.js'
import { awaitOpening } from './opening.js'

const MANY = 30
/** What a handshake is taken to cost. The budget of a turn is that of three. */
const BUSY_MS = 4
/** Two turns may lie between two looks. */
const MAX_PER_LOOK = 8
const OPENING = Buffer.from([0x16, 3, 1, 0, 1, 1])

const newConnection = (): Duplex => new Duplex({ read: () => undefined, write: (_bytes, _encoding, done) => done() })

/** Node does the work of a handshake in the next tick. */
function shakeHands(): void {
  const until = performance.now() + BUSY_MS
  while (performance.now() < until) {
    // keeps the process busy
  }
}

it('begins few handshakes in a turn although all have arrived, and those that are still wanted in the end', async () => {
  let begun = 0
  const connections = Array.from({ length: MANY }, newConnection)
  for (const connection of connections) {
    awaitOpening(connection, { clock: systemClock, logger: createLogger({ level: 'silent' }) }, ({ kind }) => {
      expect(kind).toBe('tls')
      begun++
      process.nextTick(shakeHands)
    })
  }
  // All in one turn of the event loop, each in an event of its own, as from the system.
  for (const connection of connections) setImmediate(() => connection.push(OPENING))
  setImmediate(() => connections.at(-1)?.destroy())
  let most = 0
  for (let before = 0; before < MANY - 1; before = begun) {
    await new Promise((resolve) => setImmediate(resolve))
    most = Math.max(most, begun - before)
  }
  expect(most).toBeLessThanOrEqual(MAX_PER_LOOK)
  expect(begun).toBe(MANY - 1)
})
