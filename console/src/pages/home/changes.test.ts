import { expect, it } from 'vitest'
import { AUDIT_ACTIONS, type AuditLog } from '../../../../src/contract/accounts/audit.js'
import { changeOf } from './changes.js'

const entry = (action_string: string, entity: string, entity_name?: string): AuditLog => ({
  log_id: 'log_1',
  customer_id: 'ada@x.test',
  actor: 'ada@x.test',
  timestamp: 1,
  action: 1,
  action_string,
  source: 'API_KEY',
  entity,
  secondary_entity: 'NA',
  third_entity: 'NA',
  readable_format: '',
  ip: '',
  ttl: 1,
  reason: '',
  notes: '',
  ...(entity_name !== undefined && { entity_name }),
})
const said = (...args: Parameters<typeof entry>) => {
  const { actor, did, thing, to } = changeOf(entry(...args))
  return [`${actor} ${did} ${thing}`.trim(), to]
}

it('an entry says who did what to which object, and links to it', () => {
  expect(said('Create Database', 'db1', 'shop')).toEqual(['ada@x.test created the database shop', '/databases/db1'])
  expect(said('Delete Database', 'db1', 'shop')).toEqual(['ada@x.test deleted the database shop', undefined])
  expect(said('Reset Database Password', 'db1', 'shop')[0]).toBe('ada@x.test reset database password: shop')
  expect(said('Create API Key', 'key1', 'laptop')).toEqual(['ada@x.test created the API key laptop', '/api-keys'])
  expect(said('Cancel Workflow Runs', 'bulk_1')).toEqual([
    'ada@x.test cancelled workflow runs: bulk_1',
    '/bulk-actions/bulk_1',
  ])
  expect(said('Restart Workflow Runs', 'wfr_a/b')[1]).toBe('/runs/wfr_a%2Fb')
  expect(said('Create Backup', 'db1', 'shop')[1]).toBe('/databases/db1')
  expect(said('Retry Dead Letters', 'NA')).toEqual(['ada@x.test retried dead letters', undefined])
  expect(changeOf({ ...entry('Suspend Database', 'db1'), actor: 'homeport' }).actor).toBe('Homeport')
})

it('every action has words', () => {
  for (const action of Object.keys(AUDIT_ACTIONS))
    expect(changeOf(entry(action, 'NA')).did, action).toMatch(/^[a-z]+(ed|set|undid)? /)
})
