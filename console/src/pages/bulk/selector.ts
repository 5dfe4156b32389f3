/** What the wizard selects: as it stands in the address, as the API takes it, and as lines for a terminal. */
import { shellQuote } from '../../../../src/cli/shell.js'
import { given, textAt, wholeAt } from '../workflows/search.js'

/** What the wizard can do to each run of a set. */
export const WIZARD_KINDS = ['cancelRuns', 'resumeRuns', 'restartRuns', 'deleteDeadRuns'] as const

/** What the wizard can do to each run of a set. */
export type WizardKind = (typeof WIZARD_KINDS)[number]

/** The choice as it stands in the address. Times are Unix milliseconds. */
export interface Choice {
  readonly kind?: WizardKind
  readonly url?: string
  /** The URL is the whole one, not its beginning. Only for cancelling; everything else takes whole ones. */
  readonly exact?: true
  readonly label?: string
  readonly host?: string
  readonly path?: string
  readonly caller?: string
  readonly flow?: string
  readonly from?: number
  readonly to?: number
  readonly status?: number
  /** Ids of runs or dead letters; all else is ignored then. */
  readonly ids?: readonly string[]
}

/** How the action works, which does not stand in the address. */
export interface Settings {
  readonly reason: string
  readonly ratePerSecond: number | ''
  /** How long triggers that match are refused, milliseconds; 0 for not at all. */
  readonly fenceMs: number
}

/** Settings of nobody. */
export const NO_SETTINGS: Settings = { reason: '', ratePerSecond: '', fenceMs: 0 }

const idsAt = ({ ids }: Record<string, unknown>): readonly string[] | undefined => {
  const texts = Array.isArray(ids) ? ids.filter((id): id is string => typeof id === 'string' && id !== '') : []
  return texts.length > 0 ? texts : undefined
}

/** Reads the address of the wizard. */
export function choiceOf(search: Record<string, unknown>): Choice {
  return {
    ...given({
      kind: WIZARD_KINDS.find((known) => known === search.kind),
      url: textAt(search, 'url'),
      label: textAt(search, 'label'),
      host: textAt(search, 'host'),
      path: textAt(search, 'path'),
      caller: textAt(search, 'caller'),
      flow: textAt(search, 'flow'),
      from: wholeAt(search, 'from'),
      to: wholeAt(search, 'to'),
      status: wholeAt(search, 'status'),
      ids: idsAt(search),
    }),
    ...(search.exact === true && { exact: true }),
  }
}

/** The selector as the API takes it. */
export function selectorOf(choice: Choice): Record<string, unknown> {
  const isCancel = (choice.kind ?? 'cancelRuns') === 'cancelRuns'
  if (choice.ids !== undefined) return isCancel ? { workflowRunIds: choice.ids } : { dlqIds: choice.ids }
  const list = (text: string | undefined) => (text === undefined ? undefined : [text])
  const text = isCancel ? (value: string | undefined) => value : list
  return given({
    workflowUrl: text(choice.url),
    workflowUrlExactMatch: isCancel && choice.url !== undefined ? choice.exact : undefined,
    label: text(choice.label),
    callerIp: text(choice.caller),
    flowControlKey: text(choice.flow),
    fromDate: choice.from,
    toDate: choice.to,
    ...(isCancel
      ? { host: choice.host, path: choice.path }
      : { responseStatus: choice.status === undefined ? undefined : [choice.status] }),
  })
}

/** Whether nothing is chosen, which means everything. */
export const meansEverything = (choice: Choice): boolean => Object.keys(selectorOf(choice)).length === 0

/** What stands beside the selector in the request. */
export function settingsOf({ reason, ratePerSecond, fenceMs }: Settings, nowMs: number) {
  return given({
    reason: reason.trim() === '' ? undefined : reason.trim(),
    ratePerSecond: ratePerSecond === '' ? undefined : ratePerSecond,
    fenceUntil: fenceMs === 0 ? undefined : nowMs + fenceMs,
  })
}

/** The request that does the same from a terminal. */
export function curlLine(choice: Choice, settings: Settings, queueUrl: string, nowMs: number): string {
  const kind = choice.kind ?? 'cancelRuns'
  const more = settingsOf(settings, nowMs)
  const [method, path, body] =
    kind === 'cancelRuns'
      ? ['DELETE', '/v2/workflows/runs', { ...selectorOf(choice), ...more, async: true }]
      : ['POST', '/v2/workflows/bulkActions', { kind, selector: selectorOf(choice), ...more }]
  return [
    `curl -X ${method} ${shellQuote(`${queueUrl}${path}`)}`,
    `-H "Authorization: Bearer $QSTASH_TOKEN" -H 'Content-Type: application/json'`,
    `-d ${shellQuote(JSON.stringify(body))}`,
  ].join(' \\\n  ')
}

const CLI_VERBS: Readonly<Record<WizardKind, string | undefined>> = {
  cancelRuns: 'cancel',
  resumeRuns: 'resume',
  restartRuns: 'restart',
  // The command line deletes dead letters of messages only.
  deleteDeadRuns: undefined,
}

/** The command that does the same; `undefined` when it cannot say all of it. */
export function cliLine(choice: Choice, settings: Settings): string | undefined {
  const kind = choice.kind ?? 'cancelRuns'
  const verb = CLI_VERBS[kind]
  const flags = kind === 'cancelRuns' ? cancelFlags(choice, settings) : reviveFlags(choice, settings)
  if (verb === undefined || flags === undefined) return undefined
  const words = [...(choice.ids ?? flags), ...(meansEverything(choice) ? ['--all'] : [])]
  const more = kind === 'cancelRuns' ? [...settingFlags(settings), '--async', '--yes'] : []
  return ['homeport runs', verb, ...[...words, ...more].map(shellQuote)].join(' ')
}

const flag = (name: string, value: string | number | undefined): string[] =>
  value === undefined ? [] : [`--${name}`, String(value)]

const commonFlags = ({ url, label, from, to }: Choice): string[] => [
  ...flag('url', url),
  ...flag('label', label),
  ...flag('from', from),
  ...flag('to', to),
]

const cancelFlags = (choice: Choice, _: Settings): string[] => [
  ...commonFlags(choice),
  ...(choice.exact && choice.url !== undefined ? ['--exact'] : []),
  ...flag('host', choice.host),
  ...flag('path', choice.path),
  ...flag('flow-key', choice.flow),
  ...flag('caller-ip', choice.caller),
]

function reviveFlags(choice: Choice, { reason, ratePerSecond }: Settings): string[] | undefined {
  const { caller, flow, status } = choice
  const isSayable =
    [caller, flow, status].every((value) => value === undefined) && reason === '' && ratePerSecond === ''
  return isSayable ? commonFlags(choice) : undefined
}

const settingFlags = ({ reason, ratePerSecond, fenceMs }: Settings): string[] => [
  ...flag('reason', reason.trim() === '' ? undefined : reason.trim()),
  ...flag('rate', ratePerSecond === '' ? undefined : ratePerSecond),
  ...flag('fence', fenceMs === 0 ? undefined : `${fenceMs / 60_000}m`),
]
