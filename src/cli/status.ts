import { getOverview, MAX_COUNTED, type Overview } from '../contract/console/console.js'
import { DONE, FAILED } from './exit-codes.js'
import { remote } from './remote/remote.js'
import { bytes, counted, duration, figure, momentFromNow, momentOfSeconds } from './terminal/figures.js'
import { type Fact, renderFacts } from './terminal/table.js'
import { printable, type Tone } from './terminal/text.js'

type Problem = Overview['problems'][number]

/** `homeport status`: an overview of the server for its operator. */
export const statusCommand = remote({
  name: 'status',
  summary: 'show health, versions and load of the server, and the problems that only a person can solve',
  examples: ['homeport status', 'homeport status --json --profile prod'],
  run: async ({ api, io, show, endWith }) => {
    const overview = await api.call(getOverview)
    show(overview, () => renderFacts(io, factsOf(overview)) + problemsOf(overview.problems))
    endWith(overview.problems.some(({ severity }) => severity === 'error') ? FAILED : DONE)
  },
})

function factsOf(overview: Overview): Fact[] {
  const { version, started_at, engine, store, disk, memory, tls, databases, messages, runs, bulk_actions } = overview
  return [
    ['health', ...healthOf(overview.problems)],
    ['version', version],
    ['up', duration(Date.now() - started_at * 1000)],
    ['engine', `${engine.kind} ${engine.version}${engine.problems.map((problem) => `; ${problem}`).join('')}`],
    ['store', `${store.kind}: ${store.durability}`],
    ['certificate', tls.certificate_expires_at && `expires ${momentFromNow(tls.certificate_expires_at * 1000)}`],
    ['memory', `${bytes(memory.resident_bytes)}, without the engines`],
    ['disk', `${bytes(disk.free_bytes)} free of ${bytes(disk.total_bytes)}`],
    ['databases', databasesText(databases)],
    [
      'messages',
      `${most(messages.waiting, messages.waiting_at_least)} pending, ${most(messages.dead)} dead ${messages.dead === 1 ? 'letter' : 'letters'}`,
    ],
    ['runs', `${most(runs.unfinished)} active, ${most(runs.dead)} failed`],
    ['bulk actions', `${figure(bulk_actions.unfinished)} active`],
  ]
}

function healthOf(problems: readonly Problem[]): [text: string, tone: Tone] {
  if (problems.length === 0) return ['ok', 'green']
  const isBroken = problems.some(({ severity }) => severity === 'error')
  return [counted(problems.length, 'problem'), isBroken ? 'red' : 'yellow']
}

function databasesText({ active, passive, suspended, modifying }: Overview['databases']): string {
  const rest = [suspended > 0 && `${figure(suspended)} suspended`, modifying > 0 && `${figure(modifying)} changing`]
  return [`${figure(active)} awake`, `${figure(passive)} asleep`, ...rest].filter(Boolean).join(', ')
}

/** A count in words: the server stops counting at a limit. */
const most = (count: number, isAtLeast = count >= MAX_COUNTED): string => figure(count) + (isAtLeast ? ' or more' : '')

function problemsOf(problems: readonly Problem[]): string {
  return problems
    .map(({ severity, title, advice, since, count, node }) => {
      const at = node === undefined ? '' : `node ${node}, `
      const times = `${at}${momentOfSeconds(since)}${count > 1 ? `, ${counted(count, 'time')}` : ''}`
      return `\n${severity}: ${printable(title)} (${times})\n  ${printable(advice)}\n`
    })
    .join('')
}
