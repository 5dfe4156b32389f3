import { expect, it, vi } from 'vitest'
import { tempDir } from '../../test/support/temp-dir.js'
import { recordAddresses } from './last-start.js'
import { configOfProcess, configOfServer } from './process.js'

it('a command finds the server of --data-dir at its addresses, whatever the environment says of another one', () => {
  const dataDir = tempDir()
  recordAddresses(configOfProcess({ dataDir, queuePort: '21001' }))
  vi.stubEnv('HOMEPORT_QUEUE_PORT', '21002')
  expect(configOfServer({ dataDir }).queuePort).toBe(21001)
  expect(configOfServer({ dataDir, queuePort: '21003' }).queuePort).toBe(21003)
  expect(configOfServer({ dataDir: tempDir() }).queuePort).toBe(21002)
  vi.stubEnv('HOMEPORT_DATA_DIR', dataDir)
  expect(configOfServer().queuePort).toBe(21002)
  vi.unstubAllEnvs()
})
