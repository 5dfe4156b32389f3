import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { recordedLog } from '../telemetry/testing/recorded-log.js'
import { SdkExport } from './sdk.js'
import { exportSettings } from './settings.js'

it('the export looks the collector up like a destination, and names a file that it cannot read', async () => {
  const paths: (string | undefined)[] = []
  const collector = createServer((request, response) => {
    paths.push(request.url)
    request.resume().on('end', () => response.end())
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void collector.close())
  const { port } = collector.address() as AddressInfo
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://collector.invalid:${port}`,
    OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE: '/does/not/exist',
  }
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  const log = recordedLog(['warn'])
  const names: string[] = []
  const exporting = new SdkExport(exportSettings(environment), log.logger, {
    environment,
    lookup: (name, _, done) => {
      names.push(name)
      done(null, [{ address: '127.0.0.1', family: 4 }])
    },
  })
  exporting.bind({ figures: async () => ({}) })
  await exporting.start()
  await exporting.stop()
  expect([names, paths]).toEqual([['collector.invalid'], ['/v1/metrics']])
  expect(log.lines).toHaveLength(1)
  expect(JSON.stringify(log.lines)).toContain('OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE')
})
