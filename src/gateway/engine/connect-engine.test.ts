import { getEventListeners } from 'node:events'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../../test/support/index.js'
import { systemClock } from '../../base/index.js'
import { silentLogger } from '../../telemetry/index.js'
import { ENGINE_PASSWORDS, startEngine } from '../testing/engine.js'
import { connectEngine } from './connect-engine.js'
import type { LinkIdentity } from './greeting.js'

const credentials = () => ({ username: 'default', password: ENGINE_PASSWORDS.default })
const IDENTITY: LinkIdentity = { credentials, protocol: 2 }

it('a connection keeps no listeners of refused attempts, and an abort ends it', async () => {
  const { socketPath } = await startEngine()
  const abort = new AbortController()
  const missing = join(tempDir(), 'no-engine.sock')
  let dials = 0
  const locate = () => Promise.resolve(++dials < 4 ? missing : socketPath)
  const options = { locate, identity: IDENTITY, clock: systemClock, logger: silentLogger }
  const attempt = { signal: abort.signal, identity: () => IDENTITY, onPhase: () => {}, onData: () => {} }
  const { socket } = await connectEngine(options, attempt)
  expect(dials).toBe(4)
  expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1)
  abort.abort()
  expect(socket.destroyed).toBe(true)
})
