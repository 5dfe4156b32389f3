import { X509Certificate } from 'node:crypto'
import { MAX_NAME_LENGTH } from '../contract/databases/databases.js'
import type { PlanName, PlanTable } from '../contract/databases/plans.js'
import { type Platform, REGIONS, type ReadRegion, type Region, regionsOf } from '../contract/databases/regions.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { CreationRequest } from './older-spelling.js'

/** A valid creation request with all defaults filled in. */
export interface DesiredDatabase {
  readonly name: string
  readonly platform: Platform
  readonly primaryRegion: Region
  readonly readRegions: readonly ReadRegion[]
  readonly plan: PlanName
  /** US dollars a month; 0 means none. */
  readonly budget: number
  readonly eviction: boolean
  readonly tls: boolean
  /** Absent when off, as is `productionPack`: the hash of a repeated request has to stay the same. */
  readonly autoUpgrade?: true | undefined
  readonly productionPack?: true | undefined
  /** Absent: `append-only`. */
  readonly persistence?: 'snapshot' | undefined
}

/** What validation depends on besides the request. */
export interface RuleSettings {
  readonly accountType: 'free' | 'paid'
  readonly plans: PlanTable
  readonly tlsByDefault: boolean
}

/**
 * Fills in the defaults of a request that has passed its schema, and checks rules that involve several fields.
 * @throws HomeportError `invalid_request` with all problems; `plan_not_allowed`.
 */
export function validateCreation(body: CreationRequest, settings: RuleSettings): DesiredDatabase {
  const desired: DesiredDatabase = {
    name: body.database_name.trim(),
    platform: body.platform,
    primaryRegion: body.primary_region,
    readRegions: body.read_regions ?? [],
    plan: body.plan ?? (settings.accountType === 'free' ? 'free' : 'payg'),
    budget: body.budget ?? 0,
    eviction: body.eviction ?? false,
    tls: body.tls ?? settings.tlsByDefault,
    autoUpgrade: body.auto_upgrade === true ? true : undefined,
    productionPack: body.prod_pack_enabled === true ? true : undefined,
    persistence: body.db_type === 'bolt' ? 'snapshot' : undefined,
  }
  const problems = [
    ...nameProblems(desired.name, 'database_name'),
    ...platformProblems(desired),
    ...readRegionProblems(desired, settings.plans),
  ]
  if (problems.length > 0) throw new HomeportError('invalid_request', { problem: problems.join(' ') })
  if (settings.accountType === 'free' && desired.plan !== 'free') {
    throw new HomeportError('plan_not_allowed', { plan: desired.plan })
  }
  if (desired.productionPack && desired.plan === 'free') {
    throw new HomeportError('production_pack_not_allowed', { plan: desired.plan })
  }
  return desired
}

/** The problems of a trimmed name that came in this field. */
export function nameProblems(name: string, field: string): string[] {
  const problems: string[] = []
  // Counts code points: a surrogate pair is one character.
  const length = [...name].length
  if (length < 1 || length > MAX_NAME_LENGTH) {
    problems.push(`\`${field}\` must have 1 to ${MAX_NAME_LENGTH} characters after trimming; found ${length}.`)
  }
  if (/\p{Cc}/u.test(name)) problems.push(`\`${field}\` must not hold control characters such as line breaks.`)
  if (/\p{Cs}/u.test(name)) problems.push(`\`${field}\` must be well-formed Unicode; found half of a character.`)
  return problems
}

function platformProblems({ platform, primaryRegion }: DesiredDatabase): string[] {
  const home = REGIONS[primaryRegion].platform
  if (home === platform) return []
  return [
    `\`primary_region\` "${primaryRegion}" belongs to platform "${home}", but \`platform\` is "${platform}". Send platform "${home}", or one of its own regions: ${regionsOf(platform).join(', ')}.`,
  ]
}

/** Read regions, and what decides whether they are allowed. */
export interface DesiredRegions {
  readonly readRegions: readonly string[]
  readonly platform: string
  readonly primaryRegion: string
  readonly plan: PlanName
}

/** The problems of a database's read regions. */
export function readRegionProblems(desired: DesiredRegions, plans: PlanTable): string[] {
  const { readRegions, platform, primaryRegion, plan } = desired
  const problems: string[] = []
  const repeated = readRegions.find((region, index) => readRegions.indexOf(region) !== index)
  if (repeated) problems.push(`\`read_regions\` must not repeat a region; found "${repeated}" more than once.`)
  if (readRegions.some((region) => region === primaryRegion)) {
    problems.push(`\`read_regions\` must not hold the primary region "${primaryRegion}".`)
  }
  if (platform === 'gcp' && readRegions.length > 0) {
    problems.push('`read_regions` must be empty on platform "gcp": every read region is on "aws".')
  }
  const most = plans[plan].max_read_regions
  if (readRegions.length > most) {
    problems.push(`\`read_regions\` may hold at most ${most} on plan "${plan}"; found ${readRegions.length}.`)
  }
  return problems
}

/** Base64 has no dashes, so `[^-]*` keeps an unterminated certificate from being matched to the end of the text. */
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** The problem of a `client_ca` text; undefined when it is valid. */
export function authorityProblem(pem: string): string | undefined {
  const found = pem.match(CERTIFICATE) ?? []
  const left = pem.replaceAll(CERTIFICATE, '').trim()
  if (found.length === 0 || left !== '') return '`client_ca` must consist of PEM certificates only.'
  const wrong = found.map(problemOf).filter((problem) => problem !== undefined)
  return wrong[0]
}

function problemOf(pem: string, at: number): string | undefined {
  try {
    return new X509Certificate(pem).ca
      ? undefined
      : `Certificate ${at + 1} of \`client_ca\` is not a certificate authority. Send the certificate of the authority that signs the clients' certificates.`
  } catch {
    return `Certificate ${at + 1} of \`client_ca\` cannot be read.`
  }
}
