import { Check } from 'typebox/value'
import { expect, it } from 'vitest'
import { CreateDatabaseSchema } from '../../../../src/contract/databases/databases.js'
import {
  bodyOf,
  CREATE_RULES,
  type CreateValues,
  hasMoreSettingsError,
  moreSettingsText,
  onPrimary,
  primaryRegionsFor,
  readRegionsFor,
  refusedField,
} from './create-form.js'

const values: CreateValues = {
  name: ' shop ',
  primary: 'us-east-1',
  reads: ['eu-west-1'],
  plan: 'payg',
  budget: '',
  eviction: false,
  tls: true,
}

it('the form becomes a valid request', () => {
  const body = bodyOf({ ...values, budget: 20 })
  expect(Check(CreateDatabaseSchema, body)).toBe(true)
  expect(body).toMatchObject({ database_name: 'shop', read_regions: ['eu-west-1'], budget: 20, tls: true })
})

it('the request leaves out unset fields', () => {
  expect(bodyOf({ ...values, reads: [] })).not.toHaveProperty('read_regions')
  expect(bodyOf(values)).not.toHaveProperty('budget')
})

it('only regions with a node can be selected', () => {
  expect(primaryRegionsFor('aws', ['eu-west-1', 'us-central1'])).toEqual(['eu-west-1'])
  expect(readRegionsFor('us-east-1', ['us-east-1', 'eu-west-2'])).toEqual(['eu-west-2'])
})

it('the primary region is not a read region, and regions of GCP have none', () => {
  expect(onPrimary(values, 'eu-west-1').reads).toEqual([])
  expect(onPrimary(values, 'us-central1')).toMatchObject({ primary: 'us-central1', reads: [] })
  expect(readRegionsFor('us-east-1')).not.toContain('us-east-1')
  expect(bodyOf(onPrimary(values, 'us-central1')).platform).toBe('gcp')
})

it('the form summarizes its hidden settings in one line', () => {
  expect(moreSettingsText({ ...values, reads: [], tls: false })).toBe(
    'Plan Pay as you go · no read regions · no budget · refuses writes when full · no TLS',
  )
  expect(moreSettingsText({ ...values, budget: 20 })).toContain('1 read region · $20 a month')
})

it.each([
  ['`read_regions` may hold at most 1 on plan "free"; found 2.', 'reads'],
  ['`database_name` must not hold control characters.', 'name'],
  ['Plan "payg" is not allowed for this account.', 'plan'],
  ['The disk is full.', undefined],
])('the refusal %j belongs to the field %s', (message, field) => {
  expect(refusedField(message)).toBe(field)
  expect(hasMoreSettingsError(field === undefined ? {} : { [field]: message })).toBe(
    field === 'reads' || field === 'plan',
  )
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
