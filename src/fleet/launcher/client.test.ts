import { expect, it } from 'vitest'
import { systemClock } from '../../base/index.js'
import { silentLogger } from '../../telemetry/index.js'
import { createLauncher } from './client.js'

it('can be stopped when its process failed to start, as when Node itself was replaced', async () => {
  const logger = silentLogger
  const launcher = createLauncher({ dataDir: '/', clock: systemClock, logger, endLeftovers: async () => undefined })
  const node = process.execPath
  process.execPath = '/nowhere/node'
  try {
    await expect(launcher.start()).rejects.toThrow('ENOENT')
  } finally {
    process.execPath = node
  }
  await launcher.stop()
  await expect(launcher.spawn('true', [])).rejects.toThrow('ENOENT')
})
