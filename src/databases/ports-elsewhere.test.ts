import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { singleNode } from '../cluster/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { silentLogger } from '../telemetry/index.js'
import { PortsElsewhere, type PortsElsewhereDeps } from './ports-elsewhere.js'
import * as homes from './transactions/homes.js'

it('a store that cannot be read does not fail a change that is committed', async () => {
  const warnings: string[] = []
  const ports = new PortsElsewhere({
    store: { run: () => Promise.reject(new HomeportError('store_unavailable', {})) },
    node: 'a',
    host: '127.0.0.1',
    cluster: singleNode(),
    clock: new ManualClock(),
    logger: { warn: (event) => void warnings.push(event) },
  })
  await ports.announce(['db1'])
  expect(warnings).toEqual(['databases_homes_not_read'])
})

it('a sweep of rows from before a database got another home does not bring the old home back', async () => {
  const tunnels: string[] = []
  let answerSweep: (() => void) | undefined
  const portAt = (home: string) => [{ database_id: 'db', home, port: 9_000, tls: 0, read_regions: '[damaged' }]
  const run = async (operation: unknown) => {
    if (operation === homes.portsOf) return portAt('c')
    await new Promise<void>((resolve) => (answerSweep = resolve))
    return portAt('b')
  }
  const ports = new PortsElsewhere({
    store: { run },
    node: 'a',
    host: '127.0.0.1',
    clock: new ManualClock(),
    logger: silentLogger,
    cluster: {
      peers: [],
      handle: () => undefined,
      onNodeGone: () => undefined,
      ask: async () => [],
      tunnel: async (node: string) => void tunnels.push(node),
    },
  } as unknown as PortsElsewhereDeps)
  const started = ports.start()
  await waitFor(() => answerSweep !== undefined, { what: 'the sweep' })
  await ports.announce(['db'])
  answerSweep?.()
  await started
  await ports.connect('db', { ip: '127.0.0.1', port: 1 })
  expect(tunnels).toEqual(['c'])
  expect(ports.find('db')).toEqual({ port: 9_000, tls: false, readRegions: [] })
  ports.stop()
})
