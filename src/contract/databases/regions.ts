/** A cloud platform whose regions a database can name. */
export type Platform = 'aws' | 'gcp'

/** The properties of a region. */
export interface RegionEntry {
  readonly platform: Platform
  /** Whether it can be a read region. Every region can be a primary region. */
  readonly read: boolean
}

const REGION_TABLE = {
  'us-east-1': { platform: 'aws', read: true },
  'us-east-2': { platform: 'aws', read: true },
  'us-west-1': { platform: 'aws', read: true },
  'us-west-2': { platform: 'aws', read: true },
  'ca-central-1': { platform: 'aws', read: true },
  'eu-central-1': { platform: 'aws', read: true },
  'eu-west-1': { platform: 'aws', read: true },
  'eu-west-2': { platform: 'aws', read: true },
  'sa-east-1': { platform: 'aws', read: true },
  'ap-south-1': { platform: 'aws', read: true },
  'ap-northeast-1': { platform: 'aws', read: true },
  'ap-southeast-1': { platform: 'aws', read: true },
  'ap-southeast-2': { platform: 'aws', read: true },
  'af-south-1': { platform: 'aws', read: false },
  'us-central1': { platform: 'gcp', read: false },
  'us-east4': { platform: 'gcp', read: false },
  'europe-west1': { platform: 'gcp', read: false },
  'asia-northeast1': { platform: 'gcp', read: false },
} as const satisfies Readonly<Record<string, RegionEntry>>

/** The name of a region. */
export type Region = keyof typeof REGION_TABLE

/** The name of a region that may be a read region. */
export type ReadRegion = {
  [Name in Region]: (typeof REGION_TABLE)[Name]['read'] extends true ? Name : never
}[Region]

/** All regions, in the order of error texts and documentation. */
export const REGIONS: Readonly<Record<Region, RegionEntry>> = REGION_TABLE

/** All platforms. */
export const PLATFORMS = ['aws', 'gcp'] as const satisfies readonly Platform[]

/** All regions that can be a primary region. */
export const PRIMARY_REGIONS = Object.keys(REGION_TABLE) as readonly Region[]

/** All regions that can be a read region. */
export const READ_REGIONS = PRIMARY_REGIONS.filter((region): region is ReadRegion => REGION_TABLE[region].read)

const primaryRegions: ReadonlySet<string> = new Set(PRIMARY_REGIONS)
const readRegions: ReadonlySet<string> = new Set(READ_REGIONS)

/** Whether a region of this name can be a primary region. */
export function isPrimaryRegion(name: string): name is Region {
  return primaryRegions.has(name)
}

/** Whether a region of this name can be a read region. */
export function isReadRegion(name: string): name is ReadRegion {
  return readRegions.has(name)
}

/** The regions of one platform. */
export function regionsOf(platform: Platform): readonly Region[] {
  return PRIMARY_REGIONS.filter((region) => REGION_TABLE[region].platform === platform)
}
