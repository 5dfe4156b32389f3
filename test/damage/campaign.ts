import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomFrom } from '../../src/base/testing/random.js'
import { damageFile, type Ending, FOLDER_KINDS } from './files.js'
import type { Golden } from './golden.js'
import { type Baseline, judge, type Verdict } from './judge.js'
import { complaintsIn, doctorOf, observe } from './observe.js'
import type { Trial } from './plan.js'
import { compare } from './probes.js'

/** The baselines of undamaged copies, by how the server ended. */
export type Baselines = ReadonlyMap<Ending, Baseline>

/** How often an undamaged copy is observed: `once` is for samples of a campaign that has run before. */
type Looks = 'once' | 'twice'

const untouched = (): void => undefined

async function baselineOf(golden: Golden, ending: Ending, looks: Looks): Promise<Baseline> {
  const one = await observe(golden, ending, untouched)
  const other = looks === 'once' ? one : await observe(golden, ending, untouched)
  if (one.start.kind !== 'serves') throw new Error(`the undamaged copy does not serve: ${one.start.output}`)
  const { changed, refused, unanswered } = compare(one.answers, other.answers)
  const differences = [...changed, ...refused, ...unanswered]
  if (differences.length > 0) throw new Error(`undamaged copies differ: ${differences.join('\n')}`)
  const empty = [...one.answers].find(([, { kind }]) => kind !== 'value')
  if (empty) throw new Error(`the undamaged copy answers ${JSON.stringify(empty)}`)
  let complaints: Promise<ReadonlySet<string>> | undefined
  const complain = async () => new Set(complaintsIn(await doctorOf(golden, ending, untouched)))
  return {
    answers: one.answers,
    warnings: new Set([...one.warnings, ...other.warnings]),
    complaints: () => (complaints ??= complain()),
  }
}

/** Observes undamaged copies, twice each, so that values that always differ are not mistaken for damage. */
export async function takeBaselines(
  golden: Golden,
  endings: readonly Ending[] = ['stopped', 'killed'],
  looks: Looks = 'twice',
): Promise<Baselines> {
  const taken = new Map<Ending, Baseline>()
  for (const ending of endings) taken.set(ending, await baselineOf(golden, ending, looks))
  return taken
}

/** A trial with its verdict. */
export interface Tried {
  readonly trial: Trial
  /** The damage, with its place. */
  readonly done: string
  readonly verdict: Verdict
}

/** Damages a copy, starts a server on it and judges the outcome; `undefined` if there is nothing to damage. */
export async function tryDamage(golden: Golden, baselines: Baselines, trial: Trial): Promise<Tried | undefined> {
  const baseline = baselines.get(trial.ending)
  if (!baseline) throw new Error(`there is no baseline of the copy that was ${trial.ending}`)
  let done: string | undefined
  const damage = (root: string): void => {
    done = applyDamage(golden, root, trial)
  }
  const seen = await observe(golden, trial.ending, damage)
  if (done === undefined) return undefined
  const doctor = async () => complaintsIn(await doctorOf(golden, trial.ending, damage))
  const verdict = await judge(baseline, seen, doctor)
  const isLimit = verdict.outcome === 'silently changed' && isKnownLimit(trial)
  return { trial, done, verdict: isLimit ? { ...verdict, outcome: 'known limit' } : verdict }
}

/** Damage that cannot be detected: see the limits in docs/reliability.md. */
const KNOWN_LIMITS: Readonly<Record<string, readonly Trial['damage'][]>> = {
  // It has no checksums, so a changed byte inside a value is a valid value.
  'append-only log': ['flip'],
  // A log truncated between two commits is a perfect log.
  'store log': ['truncate'],
}

const isKnownLimit = ({ target, damage }: Trial): boolean => KNOWN_LIMITS[target]?.includes(damage) ?? false

function applyDamage(
  golden: Golden,
  root: string,
  { path, damage, seed, swapWith, target }: Trial,
): string | undefined {
  const random = randomFrom(seed)
  // The first number has chosen the file.
  random()
  if (damage === 'older copy') return putOlderStore(golden, root)
  if (isFolder(target)) return damageFolder(join(root, path), damage)
  return damageFile(root, path, damage, random, swapWith)
}

const isFolder = (target: string): boolean => FOLDER_KINDS.some((kind) => kind === target)

function damageFolder(folder: string, damage: Trial['damage']): string {
  rmSync(folder, { recursive: true, force: true })
  if (damage === 'delete') return 'deleted'
  mkdirSync(join(folder, '..'), { recursive: true })
  writeFileSync(folder, 'a file in the place of a directory')
  return 'replaced by a file'
}

/** Replaces the store by a copy from before the databases and messages were created. Other files stay. */
function putOlderStore(golden: Golden, root: string): string {
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(root, `homeport.sqlite${suffix}`), { force: true })
  copyFileSync(golden.copies.earlier, join(root, 'homeport.sqlite'))
  return 'replaced by a copy from before the databases were made'
}
