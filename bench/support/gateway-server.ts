/**
 * A gateway with every limit set and one engine behind it, as a separate process. The engine also listens on a TCP
 * port, so that clients can connect to it directly. Sends all addresses on its IPC channel.
 */
import { switchNodeInternals } from '../../src/base/node-internals.js'
import { ENGINE_PASSWORDS } from '../../src/gateway/testing/engine.js'
import { CREDENTIALS, startRig } from '../../src/gateway/testing/rig.js'
import { cleanup, freePort } from '../../test/support/index.js'
import { GATEWAY_LIMITS } from './gateway-limits.js'

/** The message that the server sends when it is ready. */
export interface GatewayFacts {
  readonly gatewayPort: number
  readonly gatewayPassword: string
  readonly enginePort: number
  readonly enginePassword: string
  readonly socketPath: string
  readonly enginePid: number
  readonly restPort: number
  readonly token: string
}

if (process.env.HOMEPORT_BENCH_INTERNALS === 'off') switchNodeInternals('off')
const enginePort = await freePort()
const rig = await startRig(GATEWAY_LIMITS, undefined, undefined, ['--port', `${enginePort}`, '--bind', '127.0.0.1'])
const facts: GatewayFacts = {
  gatewayPort: rig.port,
  gatewayPassword: CREDENTIALS.password,
  enginePort,
  enginePassword: ENGINE_PASSWORDS.default,
  socketPath: rig.engine.socketPath,
  enginePid: rig.engine.pid,
  restPort: Number(new URL(rig.restUrl).port),
  token: CREDENTIALS.token,
}
process.send?.(facts)
process.once('disconnect', async () => {
  await cleanup()
  process.exit(0)
})
