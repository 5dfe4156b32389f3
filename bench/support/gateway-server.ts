/**
 * A gateway with every limit set and one engine behind it, as a process of its own. The engine also listens on a TCP
 * port, so that it can be spoken to directly. Says where everything is on its IPC channel.
 */
import { ENGINE_PASSWORDS } from '../../src/gateway/testing/engine.js'
import { CREDENTIALS, startRig } from '../../src/gateway/testing/rig.js'
import { cleanup, freePort } from '../../test/support/index.js'

/** What the server says when it is ready. */
export interface GatewayFacts {
  readonly gatewayPort: number
  readonly gatewayPassword: string
  readonly enginePort: number
  readonly enginePassword: string
  readonly socketPath: string
  readonly restPort: number
  readonly token: string
}

const GENEROUS = 1_000_000_000
const limits = {
  maxCommandsPerSecond: GENEROUS,
  maxRequestsPerMonth: Number.MAX_SAFE_INTEGER,
  maxEntryBytes: 100 * 2 ** 20,
  maxDataBytes: 2 ** 30,
  idleTimeoutMs: 6 * 60 * 60 * 1000,
  scriptTimeoutMs: 250,
  scriptMsPerMinute: 10_000,
  allowedIpRanges: ['127.0.0.0/8'],
}
const enginePort = await freePort()
const rig = await startRig(limits, undefined, undefined, ['--port', `${enginePort}`, '--bind', '127.0.0.1'])
const facts: GatewayFacts = {
  gatewayPort: rig.port,
  gatewayPassword: CREDENTIALS.password,
  enginePort,
  enginePassword: ENGINE_PASSWORDS.default,
  socketPath: rig.engine.socketPath,
  restPort: Number(new URL(rig.restUrl).port),
  token: CREDENTIALS.token,
}
process.send?.(facts)
process.once('disconnect', async () => {
  await cleanup()
  process.exit(0)
})
