import { expect, it } from 'vitest'
import { cancelWorkflowRuns, startBulkAction } from '../contract/bulk/actions.js'
import { resetPassword } from '../contract/databases/changes.js'
import type { Endpoint } from '../contract/endpoint.js'
import { docsPage } from './docs-page.js'

const exampleOn = (endpoint: Endpoint): string => {
  const page = docsPage({
    service: endpoint.service,
    version: '0.0.0',
    publicUrl: 'http://localhost',
    endpoints: [endpoint],
  })
  return /<pre>(.*?)<\/pre>/s.exec(page)?.[1] ?? ''
}

it('shows a selector in examples that would select everything without one', () => {
  expect(exampleOn(cancelWorkflowRuns)).toContain("-d '{&quot;workflowRunIds&quot;:&quot;...&quot;}'")
  expect(exampleOn(startBulkAction)).toContain('&quot;selector&quot;:')
})

it('shows no body if it has no fields', () => {
  expect(exampleOn(resetPassword)).not.toContain('-d')
})

it('formats text in backticks as code', () => {
  const page = docsPage({
    service: 'queue',
    version: '0.0.0',
    publicUrl: 'http://localhost',
    endpoints: [cancelWorkflowRuns],
  })
  expect(page).toContain('<code>async</code>')
  expect(page).not.toContain('`')
})
