/**
 * Decides which engine versions are safe. Pure.
 *
 * The decisive vulnerability is CVE-2025-49844: a script can run any code in the engine process. Every user of a
 * database may run scripts, so an engine without the fix gives its users the machine.
 */
import type { EngineInfo } from './types.js'

/** Oldest version with everything the configuration relies on. */
const OLDEST: readonly number[] = [7, 0, 0]

/** The name of the vulnerability in change logs of packages. */
export const CVE = 'CVE-2025-49844'

/**
 * First fixed version of each release line that got a fix; later lines all have it. Lines not listed never got it
 * upstream.
 */
const FIXED: Readonly<Record<EngineInfo['kind'], readonly (readonly number[])[]>> = {
  redis: [
    [7, 2, 11],
    [7, 4, 6],
    [8, 0, 4],
    [8, 2, 2],
  ],
  valkey: [
    [7, 2, 11],
    [8, 0, 6],
    [8, 1, 4],
  ],
}

/** First package versions with the fix backported to an older engine. */
const FIXED_PACKAGES: readonly { readonly like: RegExp; readonly since: string }[] = [
  { like: /^5:7\.0\.15-1~deb12u\d+$/, since: '5:7.0.15-1~deb12u6' },
  { like: /^5:8\.0\.2-3\+deb13u\d+$/, since: '5:8.0.2-3+deb13u1' },
  { like: /^8\.1\.1\+dfsg1-3\+deb13u\d+$/, since: '8.1.1+dfsg1-3+deb13u1' },
]

function compare(left: readonly number[], right: readonly number[]): number {
  for (let i = 0; i < 3; i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

function versionNumbers(version: string): readonly number[] {
  return version.split('.').map(Number)
}

/** Whether a version has the upstream fix. */
export function isFixedUpstream(kind: EngineInfo['kind'], version: string): boolean {
  const found = versionNumbers(version)
  const fixed = FIXED[kind]
  const ofLine = fixed.find(([major, minor]) => major === found[0] && minor === found[1])
  return ofLine ? compare(found, ofLine) >= 0 : compare(found, fixed.at(-1) ?? OLDEST) > 0
}

/** Trailing number of a package version, such as 6 in `...deb12u6`. */
function revision(version: string): number {
  return Number(/(\d+)$/.exec(version)?.[1] ?? 0)
}

/** Whether a package version is known to have the fix although the engine version does not. */
export function isFixedPackage(packageVersion: string): boolean {
  const line = FIXED_PACKAGES.find(({ like }) => like.test(packageVersion))
  return line !== undefined && revision(packageVersion) >= revision(line.since)
}

/** What is known of an engine. */
export interface VersionEvidence {
  readonly kind: EngineInfo['kind']
  readonly version: string
  readonly packageVersion?: string | undefined
  /** The change log of the package lists the fix. */
  readonly changeLogNamesFix: boolean
}

/** Whether a version is too old to understand our queries. */
export function isTooOld(version: string): boolean {
  return compare(versionNumbers(version), OLDEST) < 0
}

/** Reasons not to use an engine, one sentence each. */
export function problemsOf(evidence: VersionEvidence): readonly string[] {
  const { kind, version, packageVersion, changeLogNamesFix } = evidence
  if (isTooOld(version)) return [`${kind} ${version} is older than ${OLDEST.join('.')}, the oldest that works.`]
  const isFixed =
    isFixedUpstream(kind, version) || changeLogNamesFix || (packageVersion && isFixedPackage(packageVersion))
  if (isFixed) return []
  const found = packageVersion ? `${kind} ${version} (package ${packageVersion})` : `${kind} ${version}`
  return [
    `${found} lets any script run code on this machine (${CVE}); the first fixed versions are ${fixedVersions(kind)}.`,
  ]
}

function fixedVersions(kind: EngineInfo['kind']): string {
  return FIXED[kind].map((version) => version.join('.')).join(', ')
}
