/**
 * `npm run damage [-- --each <n>] [--flips <n>] [--seed <n>] [--only <kind of file>]`: damages copies of a data
 * directory that has data of every kind. Each kind of file and directory is damaged in each way. The program starts a
 * server on each copy and compares everything that clients read with the acknowledged writes. An outcome is no effect,
 * refused or reported, or a violation: the server silently changed or deleted something, hangs or ends. After a violation
 * the exit code is 1.
 */
import { appendFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Tried, takeBaselines, tryDamage } from '../test/damage/campaign.js'
import { makeGolden } from '../test/damage/golden.js'
import { isViolation, OUTCOMES } from '../test/damage/judge.js'
import { planTrials, type Trial } from '../test/damage/plan.js'
import { cleanup } from '../test/support/index.js'

const { values: given } = parseArgs({
  options: {
    each: { type: 'string', default: '4' },
    flips: { type: 'string', default: '130' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    only: { type: 'string' },
    from: { type: 'string', default: '0' },
    report: { type: 'string' },
  },
})

function whole(name: 'each' | 'flips' | 'seed' | 'from'): number {
  const number = Number(given[name])
  if (Number.isSafeInteger(number) && number >= 0) return number
  console.error(`--${name} is "${given[name]}"; give a whole number.`)
  process.exit(2)
}

const begun = performance.now()
function say(line: string): void {
  const seconds = Math.floor((performance.now() - begun) / 1000)
  console.log(`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} ${line}`)
}

const described = ({ target, damage, path }: Trial): string => `${target}: ${damage} (${path})`

function print(number: number, of: number, { trial, done, verdict }: Tried): void {
  const { outcome, evidence, reports } = verdict
  const mark = isViolation(outcome) ? 'VIOLATION ' : ''
  say(
    `${number}/${of} ${mark}${described(trial)}, ${done}: ${outcome}${reports.length > 0 ? ` [${reports.join('; ')}]` : ''}`,
  )
  if (isViolation(outcome)) for (const text of evidence.slice(0, 3)) console.log(`       ${text}`)
  if (given.report !== undefined) appendFileSync(given.report, `${JSON.stringify({ trial, done, verdict })}\n`)
}

/** One row for each target, one column for each outcome. */
function table(all: readonly Tried[]): string[] {
  const targets = [...new Set(all.map(({ trial }) => trial.target))]
  const width = Math.max(...targets.map((target) => target.length))
  const count = (target: string | undefined, outcome: string): number =>
    all.filter(({ trial, verdict }) => (target ?? trial.target) === trial.target && verdict.outcome === outcome).length
  const row = (title: string, cells: readonly (string | number)[]) =>
    [title.padEnd(width), ...cells.map((cell) => String(cell).padStart(17))].join(' ')
  return [
    row('', OUTCOMES),
    ...targets.map((target) =>
      row(
        target,
        OUTCOMES.map((outcome) => count(target, outcome)),
      ),
    ),
    row(
      'all',
      OUTCOMES.map((outcome) => count(undefined, outcome)),
    ),
  ]
}

const seed = whole('seed')
say(`making a data directory; seed ${seed}`)
const golden = await makeGolden()
if (given.report !== undefined) writeFileSync(given.report, '')
const baselines = await takeBaselines(golden)
const all = planTrials(golden, { seed, each: whole('each'), flips: whole('flips') })
const plan = all.slice(whole('from')).filter(({ target }) => given.only === undefined || target === given.only)
say(`${plan.length} trials`)
const tried: Tried[] = []
for (const [index, trial] of plan.entries()) {
  const result = await tryDamage(golden, baselines, trial)
  if (!result) continue
  tried.push(result)
  print(index + 1, plan.length, result)
}
const violations = tried.filter(({ verdict }) => isViolation(verdict.outcome)).length
console.log(table(tried).join('\n'))
console.log(`${tried.length} trials, ${violations} violations, seed ${seed}`)
if (golden.strangers.length > 0) console.log(`unexpected deliveries: ${golden.strangers.join(', ')}`)
await cleanup().catch((error: unknown) => console.log(`cleanup: ${String(error)}`))
process.exit(violations > 0 ? 1 : 0)
