/** The same action as a curl request and as a CLI command. */
import { shellQuote } from '../../../../src/cli/shell.js'
import { conditionFlags } from './conditions.js'
import { FAMILY_OF, type FilterName, filterNamesOf } from './families.js'
import {
  type Choice,
  isRedelivery,
  isUndo,
  kindOf,
  type Settings,
  selectorOf,
  selectsEverything,
  sendingHeaders,
  settingsOf,
} from './selector.js'
import type { Kind } from './words.js'

/** The curl request. */
export function curlLine(choice: Choice, settings: Settings, queueUrl: string, nowMs: number): string {
  const kind = kindOf(choice)
  const more = settingsOf(kind, settings, nowMs)
  const [method, path, body] =
    kind === 'cancelRuns'
      ? ['DELETE', '/v2/workflows/runs', { ...selectorOf(choice), ...more, async: true }]
      : ['POST', '/v2/workflows/bulkActions', { kind, selector: selectorOf(choice), ...more }]
  return [
    `curl -X ${method} ${shellQuote(`${queueUrl}${path}`)}`,
    `-H "Authorization: Bearer $QSTASH_TOKEN" -H 'Content-Type: application/json'`,
    ...Object.entries(sendingHeaders(choice, settings)).map(([name, value]) => `-H ${shellQuote(`${name}: ${value}`)}`),
    `-d ${shellQuote(JSON.stringify(body))}`,
  ].join(' \\\n  ')
}

/** A CLI command for a kind of action. */
interface Command {
  readonly words: string
  /** The flags of its filters. */
  readonly flags: Readonly<Partial<Record<FilterName, string>>>
  /** The flags at the end. */
  readonly tail: readonly string[]
  /** Whether the command has flags for conditions, reason, rate and fence. */
  readonly settings: 'taken' | 'not taken'
}

const BASIC_FLAGS = { url: '--url', label: '--label', from: '--from', to: '--to' } as const
const CALLER_FLAGS = { caller: '--caller-ip', flow: '--flow-key' } as const
const QUEUE_FLAGS = { queue: '--queue', group: '--group', schedule: '--schedule' } as const
const RUN_FLAGS = { ...BASIC_FLAGS, host: '--host', path: '--path', ...CALLER_FLAGS }
const LETTER_FLAGS = { ...BASIC_FLAGS, ...QUEUE_FLAGS, ...CALLER_FLAGS }

const COMMANDS: Readonly<Partial<Record<Kind, Command>>> = {
  cancelRuns: {
    words: 'runs cancel',
    flags: RUN_FLAGS,
    tail: ['--async', '--yes'],
    settings: 'taken',
  },
  pauseRuns: { words: 'runs pause', flags: RUN_FLAGS, tail: [], settings: 'taken' },
  unpauseRuns: { words: 'runs unpause', flags: RUN_FLAGS, tail: [], settings: 'taken' },
  resumeRuns: { words: 'runs resume', flags: BASIC_FLAGS, tail: [], settings: 'not taken' },
  restartRuns: { words: 'runs restart', flags: BASIC_FLAGS, tail: [], settings: 'not taken' },
  retryFailureCallbacks: { words: 'runs retry-callbacks', flags: BASIC_FLAGS, tail: [], settings: 'not taken' },
  cancelMessages: { words: 'queue messages cancel', flags: LETTER_FLAGS, tail: ['--yes'], settings: 'not taken' },
  retryDeadLetters: { words: 'queue dlq retry', flags: LETTER_FLAGS, tail: [], settings: 'not taken' },
  deleteDeadLetters: { words: 'queue dlq delete', flags: LETTER_FLAGS, tail: ['--yes'], settings: 'not taken' },
}

/** The general command, which supports every kind of action. */
const startOf = (kind: Kind): Command => ({
  words: `bulk start ${kind}`,
  flags: { ...LETTER_FLAGS, host: '--host', path: '--path' },
  tail: ['--yes'],
  settings: 'taken',
})

/** The CLI command: a short one if it supports every filter and setting. */
export function cliLine(choice: Choice, settings: Settings): string {
  const kind = kindOf(choice)
  const how = settingFlags(kind, settings)
  const short = COMMANDS[kind]
  const hasShortForm = short && whichOf(choice, short) !== undefined && (how.length === 0 || short.settings === 'taken')
  const command = hasShortForm ? short : startOf(kind)
  const which = whichOf(choice, command) ?? ['--selector', JSON.stringify(selectorOf(choice))]
  const again = isRedelivery(choice) ? sendingFlags(settings) : []
  return [`homeport ${command.words}`, ...[...which, ...again, ...how, ...command.tail].map(shellQuote)].join(' ')
}

/** IDs or flags; `undefined` if a filter or condition has no flag. */
function whichOf(choice: Choice, { flags, settings }: Command): readonly string[] | undefined {
  if (choice.ids !== undefined) return choice.ids
  if (selectsEverything(choice)) return ['--all']
  const chosen = filterNamesOf(kindOf(choice)).filter((name) => choice[name] !== undefined)
  if (chosen.some((name) => flags[name] === undefined)) return undefined
  const conditions = conditionFlags(FAMILY_OF[kindOf(choice)], choice)
  if (conditions.length > 0 && settings === 'not taken') return undefined
  const words = [...chosen.flatMap((name) => [flags[name] ?? '', String(choice[name])]), ...conditions]
  return 'workflowUrlExactMatch' in selectorOf(choice) ? [...words, '--exact'] : words
}

const flag = (name: string, value: string | number | undefined): string[] =>
  value === undefined ? [] : [name, String(value)]

const sendingFlags = ({ delay, retries }: Settings): string[] => [
  ...flag('--delay', delay.trim() === '' ? undefined : delay.trim()),
  ...flag('--retries', retries === '' ? undefined : retries),
]

const settingFlags = (kind: Kind, { reason, ratePerSecond, fenceMs, pauseClock, undoClock }: Settings): string[] => [
  ...flag('--reason', reason.trim() === '' ? undefined : reason.trim()),
  ...flag('--rate', ratePerSecond === '' ? undefined : ratePerSecond),
  ...flag('--fence', fenceMs === 0 || kind !== 'cancelRuns' ? undefined : `${fenceMs / 60_000}m`),
  ...(kind === 'pauseRuns' && pauseClock === 'hold' ? ['--hold-clock'] : []),
  ...flag('--clock', isUndo(kind) && undoClock !== 'original' ? undoClock : undefined),
]
