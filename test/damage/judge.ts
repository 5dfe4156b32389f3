import { kindOf } from './files.js'
import { isRaw, type Observation } from './observe.js'
import { type Answers, compare } from './probes.js'

/** The outcomes of a damage. The first four are guaranteed or documented; each of the others is a violation. */
export const OUTCOMES = [
  'no effect',
  'refused',
  'reported',
  'known limit',
  'silently changed',
  'deleted',
  'ended',
  'unreadable text',
] as const
export type Outcome = (typeof OUTCOMES)[number]

/** Whether an outcome breaks a guarantee. */
export const isViolation = (outcome: Outcome): boolean => OUTCOMES.indexOf(outcome) > OUTCOMES.indexOf('known limit')

/** The observation of an undamaged directory. */
export interface Baseline {
  readonly answers: Answers
  readonly warnings: ReadonlySet<string>
  /** Those of the doctor, which is run when they are first needed. */
  readonly complaints: () => Promise<ReadonlySet<string>>
}

/** An outcome with its evidence. */
export interface Verdict {
  readonly outcome: Outcome
  readonly evidence: readonly string[]
  /** Where the damage was reported: the log, `/health`, the doctor, or the answers themselves. */
  readonly reports: readonly string[]
}

/** Judges an observation. Runs `doctor` only if neither log nor `/health` has reported the damage. */
export async function judge(
  baseline: Baseline,
  seen: Observation,
  doctor: () => Promise<readonly string[]>,
): Promise<Verdict> {
  const deleted = deletedFiles(seen)
  if (deleted.length > 0) return { outcome: 'deleted', evidence: deleted, reports: [] }
  const { start } = seen
  if (start.kind === 'hangs') return { outcome: 'ended', evidence: [`hangs: ${tail(start.output)}`], reports: [] }
  if (start.kind === 'refused') return judgeRefusal(start.code, start.output)
  if (seen.ended !== 'as requested')
    return { outcome: 'ended', evidence: [`ended ${seen.ended}: ${tail(seen.log)}`], reports: [] }
  const { changed, refused, unanswered } = compare(baseline.answers, seen.answers)
  if (unanswered.length > 0) return { outcome: 'ended', evidence: unanswered, reports: [] }
  const raw = [...refused, ...seen.warnings].find(isRaw)
  if (raw !== undefined) return { outcome: 'unreadable text', evidence: [raw], reports: [] }
  const reports = await reportsOf(baseline, seen, changed.length > 0, doctor)
  if (changed.length > 0)
    return { outcome: reports.length > 0 ? 'reported' : 'silently changed', evidence: changed, reports }
  const unwritable = Object.entries(seen.writes).flatMap(([name, done]) => (done ? [] : [`cannot ${name}`]))
  const limits = [...refused, ...unwritable]
  if (limits.length > 0) return { outcome: 'refused', evidence: limits, reports: ['answer', ...reports] }
  return { outcome: reports.length > 0 ? 'reported' : 'no effect', evidence: [], reports }
}

function judgeRefusal(code: string, output: string): Verdict {
  const evidence = [`exit code ${code}: ${tail(output)}`]
  const isSaid = code !== 'null' && code !== '0' && !isRaw(output) && /error: \S+/.test(output)
  return { outcome: isSaid ? 'refused' : 'unreadable text', evidence, reports: ['start'] }
}

const ABOUT_DAMAGE =
  /damaged|missing|\blost\b|corrupt|quarantine|cut (?:off|short)|truncat|incomplete|does not know|not a database|malformed|unreadable/i

async function reportsOf(
  baseline: Baseline,
  seen: Observation,
  isNeeded: boolean,
  doctor: () => Promise<readonly string[]>,
): Promise<string[]> {
  const reports: string[] = []
  const isNew = (line: string): boolean => !baseline.warnings.has(line)
  // If an answer has changed, only a line about damaged data counts.
  const fresh = seen.warnings.filter((line) => isNew(line) && (!isNeeded || ABOUT_DAMAGE.test(line)))
  if (fresh.length > 0) reports.push(`log: ${fresh[0]}`)
  if (seen.problems > 0) reports.push(`health: ${seen.problems}`)
  if (reports.length > 0 || !isNeeded) return reports
  const usual = await baseline.complaints()
  const [complaint] = (await doctor()).filter((line) => !usual.has(line))
  return complaint === undefined ? [] : [`doctor: ${complaint}`]
}

/**
 * Files that existed before the start, damaged or not, and that exist nowhere afterwards. Files whose content normally
 * changes are judged by what clients read, unless the server refused to start, which changes nothing.
 */
function deletedFiles({ start, filesPristine, filesBefore, filesAfter }: Observation): string[] {
  const left = new Set(filesAfter.values())
  const isRepaired = (path: string): boolean => filesAfter.get(path) === filesPristine.get(path)
  return [...filesBefore]
    .filter(
      ([path, digest]) =>
        !left.has(digest) && !isRepaired(path) && mustStay(path, start.kind === 'refused', filesAfter.has(path)),
    )
    .map(([path]) => `${path} is gone`)
}

function mustStay(path: string, isRefused: boolean, isThere: boolean): boolean {
  const custody = kindOf(path)?.custody ?? 'spare'
  if (custody === 'kept') return true
  // An engine may rewrite its log under another name, but the folder must still exist.
  if (custody === 'data') return isRefused && !isThere
  return false
}

const tail = (text: string): string => text.trim().split('\n').slice(-4).join(' | ').slice(-600)
