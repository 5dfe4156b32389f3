import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { alone } from '../cluster/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { PortsElsewhere } from './ports-elsewhere.js'

it('a store that cannot be read does not fail a change that is committed', async () => {
  const warnings: string[] = []
  const ports = new PortsElsewhere({
    store: { run: () => Promise.reject(new HomeportError('store_unavailable', {})) },
    node: 'a',
    host: '127.0.0.1',
    cluster: alone(),
    clock: new ManualClock(),
    logger: { warn: (event) => void warnings.push(event) },
  })
  await ports.announce(['db1'])
  expect(warnings).toEqual(['databases_homes_not_read'])
})
