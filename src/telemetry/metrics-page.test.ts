import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { MetricDeclaration } from '../contract/metrics/declaration.js'
import { METRICS } from '../contract/metrics/metrics.js'
import { metricsPage } from './metrics-page.js'

it('docs/metrics.md is the page of the declarations; npm run docs writes it', () => {
  expect(readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')).toBe(metricsPage())
})

it('names follow the conventions of Prometheus', () => {
  for (const [name, { kind, help }] of Object.entries<MetricDeclaration>(METRICS)) {
    expect(name).toMatch(/^(?:homeport|process|nodejs)(?:_[a-z0-9]+)+$/)
    expect(name.endsWith('_total'), name).toBe(kind === 'counter')
    expect(help, name).toMatch(/\.$/)
  }
})
