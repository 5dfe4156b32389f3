import { kindOf } from './files.js'
import { isRaw, type Observation } from './observe.js'
import { type Answers, compare } from './probes.js'

/** What a damage came to. The first four are as promised or documented; each of the others breaks a promise. */
export const OUTCOMES = [
  'no effect',
  'refused',
  'told',
  'known limit',
  'silently changed',
  'deleted',
  'ended',
  'unreadable text',
] as const
export type Outcome = (typeof OUTCOMES)[number]

/** Outcomes that break a promise. */
export const isViolation = (outcome: Outcome): boolean => OUTCOMES.indexOf(outcome) > OUTCOMES.indexOf('known limit')

/** What an undamaged directory shows. */
export interface Baseline {
  readonly answers: Answers
  readonly warnings: ReadonlySet<string>
  readonly complaints: ReadonlySet<string>
}

/** An outcome with what it was judged by. */
export interface Verdict {
  readonly outcome: Outcome
  readonly evidence: readonly string[]
  /** Where it was told: the log, `/health`, the doctor, or the answers themselves. */
  readonly told: readonly string[]
}

/** Judges what was seen. `doctor` is asked only when nobody else has told. */
export async function judge(
  baseline: Baseline,
  seen: Observation,
  doctor: () => Promise<readonly string[]>,
): Promise<Verdict> {
  const deleted = deletedFiles(seen)
  if (deleted.length > 0) return { outcome: 'deleted', evidence: deleted, told: [] }
  const { start } = seen
  if (start.kind === 'hangs') return { outcome: 'ended', evidence: [`hangs: ${tail(start.output)}`], told: [] }
  if (start.kind === 'refused') return judgeRefusal(start.code, start.output)
  if (seen.ended !== 'as told')
    return { outcome: 'ended', evidence: [`ended ${seen.ended}: ${tail(seen.log)}`], told: [] }
  const { changed, refused, unanswered } = compare(baseline.answers, seen.answers)
  if (unanswered.length > 0) return { outcome: 'ended', evidence: unanswered, told: [] }
  const raw = [...refused, ...seen.warnings].find(isRaw)
  if (raw !== undefined) return { outcome: 'unreadable text', evidence: [raw], told: [] }
  const told = await whoTold(baseline, seen, changed.length > 0, doctor)
  if (changed.length > 0) return { outcome: told.length > 0 ? 'told' : 'silently changed', evidence: changed, told }
  const unwritable = Object.entries(seen.writes).flatMap(([name, done]) => (done ? [] : [`cannot ${name}`]))
  const limits = [...refused, ...unwritable]
  if (limits.length > 0) return { outcome: 'refused', evidence: limits, told: ['answer', ...told] }
  return { outcome: told.length > 0 ? 'told' : 'no effect', evidence: [], told }
}

function judgeRefusal(code: string, output: string): Verdict {
  const evidence = [`exit code ${code}: ${tail(output)}`]
  const isSaid = code !== 'null' && code !== '0' && !isRaw(output) && /error: \S+/.test(output)
  return { outcome: isSaid ? 'refused' : 'unreadable text', evidence, told: ['start'] }
}

const ABOUT_DAMAGE =
  /damaged|missing|\blost\b|corrupt|quarantine|cut (?:off|short)|truncat|incomplete|does not know|not a database|malformed|unreadable/i

async function whoTold(
  baseline: Baseline,
  seen: Observation,
  isNeeded: boolean,
  doctor: () => Promise<readonly string[]>,
): Promise<string[]> {
  const told: string[] = []
  const isNew = (line: string): boolean => !baseline.warnings.has(line)
  // Where an answer has changed, only a line that says what is wrong with the data counts.
  const fresh = seen.warnings.filter((line) => isNew(line) && (!isNeeded || ABOUT_DAMAGE.test(line)))
  if (fresh.length > 0) told.push(`log: ${fresh[0]}`)
  if (seen.problems > 0) told.push(`health: ${seen.problems}`)
  if (told.length > 0 || !isNeeded) return told
  const [complaint] = (await doctor()).filter((line) => !baseline.complaints.has(line))
  return complaint === undefined ? [] : [`doctor: ${complaint}`]
}

/**
 * Files that were there before the start, damaged or not, and are nowhere afterwards. Files whose content changes with
 * what they hold are judged by what clients read, unless the server was refused, which changes nothing.
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
  // An engine may write its log anew, under another name; the folder has to be there all the same.
  if (custody === 'data') return isRefused && !isThere
  return false
}

const tail = (text: string): string => text.trim().split('\n').slice(-4).join(' | ').slice(-600)
