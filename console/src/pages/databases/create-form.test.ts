import { Check } from 'typebox/value'
import { expect, it } from 'vitest'
import { CreateDatabaseSchema } from '../../../../src/contract/databases/databases.js'
import {
  bodyOf,
  CREATE_RULES,
  type CreateValues,
  onPrimary,
  primaryRegionsFor,
  readRegionsFor,
  summaryOf,
} from './create-form.js'

const values: CreateValues = {
  ...{ name: ' shop ', platform: 'aws', primary: 'us-east-1', reads: ['eu-west-1'], plan: 'payg' },
  ...{ budget: '', eviction: false, tls: true },
}

it('becomes a valid request', () => {
  const body = bodyOf({ ...values, budget: 20 })
  expect(Check(CreateDatabaseSchema, body)).toBe(true)
  expect(body).toMatchObject({ database_name: 'shop', read_regions: ['eu-west-1'], budget: 20, tls: true })
})

it('leaves out unset fields', () => {
  expect(bodyOf({ ...values, reads: [] })).not.toHaveProperty('read_regions')
  expect(bodyOf(values)).not.toHaveProperty('budget')
})

it('a region of another platform has no read regions', () => {
  expect(onPrimary(values, 'us-central1')).toMatchObject({ platform: 'gcp', primary: 'us-central1', reads: [] })
  expect(readRegionsFor({ platform: 'gcp', primary: 'us-central1' })).toEqual([])
})

it('only regions with a node can be selected', () => {
  expect(primaryRegionsFor('aws', ['eu-west-1', 'us-central1'])).toEqual(['eu-west-1'])
  expect(readRegionsFor(values, ['us-east-1', 'eu-west-2'])).toEqual(['eu-west-2'])
})

it('says in one line what is hidden', () => {
  expect(summaryOf(values, 'Free')).toBe('Plan Free, no budget, 1 read region, eviction off, TLS on')
  const more = { reads: [], budget: 20, eviction: true, tls: false } as const
  expect(summaryOf({ ...values, ...more }, 'Free')).toBe('Plan Free, budget $20, no read regions, eviction on, TLS off')
})

it('the primary region is not a read region', () => {
  expect(onPrimary(values, 'eu-west-1').reads).toEqual([])
  expect(readRegionsFor(values)).not.toContain('us-east-1')
})

it.each([
  ['', 'Enter a name for the database'],
  ['   ', 'Enter a name for the database'],
  ['x'.repeat(129), 'At most 128 characters, found 129'],
  ['a\tb', 'Control characters are not allowed'],
  ['shop', null],
])('the name %j: %s', (name, problem) => {
  expect(CREATE_RULES.name(name)).toBe(problem)
})

it.each([
  ['', null],
  [0, null],
  [1_000_000, null],
  [1_000_001, 'Whole US dollars, at most 1,000,000'],
  [1.5, 'Whole US dollars, at most 1,000,000'],
] as const)('the budget %j: %s', (budget, problem) => {
  expect(CREATE_RULES.budget(budget)).toBe(problem)
})
