import { expect, it } from 'vitest'
import { COMMAND_INDEX, DatabaseMeter } from './database-meter.js'
import { MeterTotals } from './meter-totals.js'
import { renderMetrics } from './metrics.js'

const used = (commands: number, latencyUs: number): DatabaseMeter => {
  const meter = new DatabaseMeter()
  meter.lastActivityAtMs = 1
  meter.countCommand(COMMAND_INDEX.get('GET') ?? 0, commands)
  meter.readLatency.record(latencyUs)
  meter.bytesIn = 100
  meter.connections = 2
  return meter
}

const lines = async (totals: MeterTotals) => (await renderMetrics(totals.figures)).split('\n')

it('the export sums all databases, and does not shrink when one is deleted', async () => {
  const totals = new MeterTotals()
  const [one, other] = [used(3, 100), used(4, 100)]
  totals.look([one, other])
  totals.look([one, other])
  expect(await lines(totals)).toContain('homeport_gateway_commands_total{kind="reads"} 7')
  one.countCommand(COMMAND_INDEX.get('GET') ?? 0, 1)
  totals.look([one])
  const seen = await lines(totals)
  expect(seen).toContain('homeport_gateway_commands_total{kind="reads"} 8')
  expect(seen).toContain('homeport_gateway_bytes_total{direction="in"} 200')
  expect(seen).toContain('homeport_gateway_connections 2')
})

it('the export puts each latency in the bucket that ends at or above it', async () => {
  for (const [latencyUs, below, from] of [
    [1, undefined, '0.000064'],
    [63, undefined, '0.000064'],
    [100, '0.000064', '0.000128'],
    [5_000, '0.004096', '0.008192'],
    [60_000_000, '8.388608', '+Inf'],
  ] as const) {
    const totals = new MeterTotals()
    totals.look([used(1, latencyUs)])
    const seen = await lines(totals)
    const bucket = (le: string, count: number) =>
      `homeport_gateway_command_duration_seconds_bucket{le="${le}",kind="reads"} ${count}`
    const found = seen.filter((line) => line.includes('duration_seconds_bucket') && line.includes('"reads"'))
    const strip = (line: string) => line.replace(/\{(kind="reads"),(le="[^"]+")\}/, '{$2,$1}')
    if (below !== undefined) expect(found.map(strip)).toContain(bucket(below, 0))
    expect(found.map(strip)).toContain(bucket(from, 1))
  }
})
