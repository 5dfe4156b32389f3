import { describe, expect, it } from 'vitest'
import { type CreateDatabaseBody, CreateDatabaseSchema } from '../contract/databases/databases.js'
import { DEFAULT_PLANS, PLAN_NAMES } from '../contract/databases/plans.js'
import { PRIMARY_REGIONS, READ_REGIONS, REGIONS } from '../contract/databases/regions.js'
import { compileChecker } from '../http/index.js'
import { type RuleSettings, validateCreation } from './rules.js'

const settings: RuleSettings = { accountType: 'paid', plans: DEFAULT_PLANS, tlsByDefault: false }
const least: CreateDatabaseBody = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }
const checkShape = compileChecker(CreateDatabaseSchema, 'body')

/** Validates a request against its schema, then the rules. */
function validate(body: object, some: Partial<RuleSettings> = {}) {
  checkShape(body)
  return validateCreation(body as CreateDatabaseBody, { ...settings, ...some })
}

describe('a creation', () => {
  it('gets every default', () => {
    expect(validate(least)).toEqual({
      name: 'shop',
      platform: 'aws',
      primaryRegion: 'us-east-1',
      readRegions: [],
      plan: 'payg',
      budget: 0,
      eviction: false,
      tls: false,
    })
    expect(validate(least, { accountType: 'free' }).plan).toBe('free')
    expect(validate(least, { tlsByDefault: true }).tls).toBe(true)
  })

  it('keeps its values, trims the name and ignores unknown fields', () => {
    const body = {
      database_name: '  caf\u00e9 \u{1f431} ',
      platform: 'aws',
      primary_region: 'eu-west-1',
      read_regions: ['us-west-2'],
      plan: 'fixed_1gb',
      budget: 360,
      eviction: true,
      tls: true,
      region: 'global',
      consistent: false,
      multizone: 7,
    }
    expect(validate(body)).toEqual({
      name: 'café 🐱',
      platform: 'aws',
      primaryRegion: 'eu-west-1',
      readRegions: ['us-west-2'],
      plan: 'fixed_1gb',
      budget: 360,
      eviction: true,
      tls: true,
    })
  })

  it.each(PRIMARY_REGIONS)('may have the primary region %s on its platform and on no other', (region) => {
    const { platform } = REGIONS[region]
    const other = platform === 'aws' ? 'gcp' : 'aws'
    expect(validate({ ...least, platform, primary_region: region }).primaryRegion).toBe(region)
    expect(() => validate({ ...least, platform: other, primary_region: region })).toThrow(
      `"${region}" belongs to platform "${platform}", but \`platform\` is "${other}". Send platform "${platform}"`,
    )
  })

  it.each(READ_REGIONS)('may have the read region %s', (region) => {
    const primary = region === 'us-east-1' ? 'us-east-2' : 'us-east-1'
    expect(validate({ ...least, primary_region: primary, read_regions: [region] }).readRegions).toEqual([region])
  })

  it.each(PLAN_NAMES)('may have the plan %s', (plan) => {
    expect(validate({ ...least, plan }).plan).toBe(plan)
  })

  it.each([0, 1, 1_000_000])('may have the budget %d', (budget) => {
    expect(validate({ ...least, budget }).budget).toBe(budget)
  })

  it('counts code points of a name', () => {
    expect(validate({ ...least, database_name: '🐱'.repeat(128) }).name).toHaveLength(256)
    expect(() => validate({ ...least, database_name: '🐱'.repeat(129) })).toThrow('1 to 128 characters')
  })
})

describe('a creation is refused', () => {
  const refusals: readonly (readonly [string, object, string | RegExp])[] = [
    ['without a name', { ...least, database_name: undefined }, '`database_name` is required'],
    [
      'with the old spelling of the name',
      { name: 'x', ...least, database_name: undefined },
      '`database_name` is required',
    ],
    ['with an empty name', { ...least, database_name: '' }, '1 to 128 characters after trimming; found 0'],
    ['with a blank name', { ...least, database_name: ' \t ' }, '1 to 128 characters after trimming; found 0'],
    ['with a name that is too long', { ...least, database_name: 'x'.repeat(129) }, 'found 129'],
    ['with a line break in the name', { ...least, database_name: 'a\nb' }, 'control characters'],
    ['with a zero byte in the name', { ...least, database_name: 'a\u0000b' }, 'control characters'],
    ['with half of a character in the name', { ...least, database_name: 'a\ud83d' }, 'well-formed Unicode'],
    ['with a number as the name', { ...least, database_name: 7 }, '`database_name` must be a string; found 7'],
    ['without a platform', { ...least, platform: undefined }, '`platform` is required: one of aws, gcp'],
    ['with an unknown platform', { ...least, platform: 'azure' }, '`platform` must be one of aws, gcp; found "azure"'],
    [
      'without a primary region',
      { ...least, primary_region: undefined },
      '`primary_region` is required: one of us-east-1,',
    ],
    [
      'with an unknown primary region',
      { ...least, primary_region: 'mars-1' },
      /`primary_region` must be one of us-east-1, .*asia-northeast1; found "mars-1"/,
    ],
    [
      'with an unknown read region',
      { ...least, read_regions: ['mars-1'] },
      /`read_regions\[0\]` must be one of .*ap-southeast-2; found "mars-1"/,
    ],
    ['with a primary-only read region', { ...least, read_regions: ['af-south-1'] }, '`read_regions[0]` must be one of'],
    ['with read regions that are no list', { ...least, read_regions: 'us-west-1' }, '`read_regions` must be an array'],
    [
      'with a repeated read region',
      { ...least, read_regions: ['us-west-1', 'us-west-1'] },
      'must not repeat a region; found "us-west-1"',
    ],
    [
      'with the primary as a read region',
      { ...least, read_regions: ['us-east-1'] },
      'must not hold the primary region',
    ],
    [
      'with read regions on gcp',
      { ...least, platform: 'gcp', primary_region: 'us-east4', read_regions: ['us-west-1'] },
      'must be empty on platform "gcp"',
    ],
    [
      'with two read regions on plan free',
      { ...least, plan: 'free', read_regions: ['us-west-1', 'us-west-2'] },
      'at most 1 on plan "free"; found 2',
    ],
    ['with an unknown plan', { ...least, plan: 'gold' }, '`plan` must be one of free, payg, fixed_250mb,'],
    ['with a negative budget', { ...least, budget: -1 }, '`budget` must be at least 0; found -1'],
    ['with a huge budget', { ...least, budget: 1_000_001 }, '`budget` must be at most 1000000'],
    ['with a fraction of a budget', { ...least, budget: 1.5 }, '`budget` must be an integer; found 1.5'],
    ['with an infinite budget', { ...least, budget: JSON.parse('1e999') }, '`budget` must be'],
    ['with a text as the budget', { ...least, budget: '5' }, '`budget` must be an integer; found "5"'],
    ['with a text as eviction', { ...least, eviction: 'true' }, '`eviction` must be a boolean; found "true"'],
    ['with a number as tls', { ...least, tls: 1 }, '`tls` must be a boolean; found 1'],
    ['with a list as the body', [least], 'The request body must be an object'],
  ]

  it.each(refusals)('%s', (_what, body, text) => {
    // As JSON arrives: without undefined fields.
    const received = Array.isArray(body)
      ? body
      : Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
    expect(() => validate(received)).toThrow(text)
  })

  it('with every problem at once', () => {
    const body = { ...least, platform: 'gcp', database_name: '\n', read_regions: ['us-east-1', 'us-east-1'] }
    expect(() => validate(body)).toThrow(
      /1 to 128 .* belongs to platform .* must not repeat .* primary region .* must be empty/,
    )
  })

  it('with a paid plan for a free account', () => {
    expect(() => validate({ ...least, plan: 'payg' }, { accountType: 'free' })).toThrow(
      'not available to an account of type free',
    )
  })
})
