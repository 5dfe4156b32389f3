import { Command } from 'commander'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import packageFile from '../../package.json' with { type: 'json' }
import { tryParseJson, VERSION } from '../base/index.js'
import { failedWith } from './errors.js'
import { DONE, type ExitCode } from './exit-codes.js'
import type { Io } from './io.js'
import { addExamples } from './remote/remote.js'
import { printable } from './terminal/text.js'

const REGISTRY = 'https://registry.npmjs.org'
const ANSWER_WITHIN_MS = 10_000
const MAX_ANSWER_BYTES = 1_000_000

/** The members of a version's description in the registry that are read; a program of another project may have the name. */
const VersionSchema = Type.Object({
  version: Type.String({ pattern: '^\\d+\\.\\d+\\.\\d+(?:-[\\w.-]+)?$', maxLength: 64 }),
  product: Type.Literal(packageFile.product),
})

/** `homeport upgrade`: compares the installed version with the newest one. It installs nothing. */
export function upgradeCommand(io: Io, end: (code: ExitCode) => void): Command {
  const command = new Command('upgrade')
    .description(
      'ask the npm registry for the newest version and say how to upgrade. The request names the package only, nothing ' +
        'about this installation',
    )
    .option('--check', 'only check; the default, as the command never installs anything', true)
    .option('--registry <url>', 'the npm registry', REGISTRY)
    .option('--json', 'print one JSON object instead', false)
  addExamples(command, ['homeport upgrade --check'])
  return command.action(async () => {
    const { registry, json } = command.opts<{ registry: string; json: boolean }>()
    const newest = await newestIn(registry)
    const isNewer = isAbove(newest, VERSION)
    const found = { installed: VERSION, newest, upgrade_available: isNewer }
    io.out(json ? `${JSON.stringify(found)}\n` : adviceFor(newest, isNewer))
    end(DONE)
  })
}

function adviceFor(newest: string, isNewer: boolean): string {
  if (!isNewer) return `Homeport ${VERSION} is up to date (newest version: ${newest}).\n`
  const { name } = packageFile
  return `Homeport ${newest} is available; ${VERSION} is installed.
Stop the server, back up its data directory, install ${name}@${newest} as you installed this version, and start again.
See "Upgrade and go back" in docs/install.md.
`
}

async function newestIn(registry: string): Promise<string> {
  const text = await ask(`${registry.replace(/\/+$/, '')}/${packageFile.name}/latest`)
  const found = tryParseJson(text)
  if (Value.Check(VersionSchema, found)) return found.version
  const problem = `The package ${packageFile.name} of ${registry} is another program with the same name, so it says nothing about a new version.`
  throw failedWith(problem)
}

async function ask(url: string): Promise<string> {
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    if (!response.ok) throw new Error(`it answered with status ${response.status}`)
    return await bounded(response)
  } catch (error) {
    const problem = `The registry did not answer at ${url}: ${reasonOf(error)}. The installed version is ${VERSION}; check again when this machine is online, or set --registry.`
    throw failedWith(problem, { cause: error })
  }
}

/** Reads the text of a response up to a limit: anybody may have sent the response. */
async function bounded(response: Response): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    if (bytes > MAX_ANSWER_BYTES) throw new Error('its answer is too long')
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** The message of the error's cause, because the error of `fetch` itself has no details. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return printable(cause instanceof Error ? cause.message || cause.name : String(cause))
}

/** Compares release numbers; a version with a suffix precedes the one without. */
function isAbove(some: string, other: string): boolean {
  const [numbers, others] = [numbersOf(some), numbersOf(other)]
  const differing = numbers.findIndex((number, index) => number !== others[index])
  if (differing >= 0) return (numbers[differing] ?? 0) > (others[differing] ?? 0)
  return other.includes('-') && !some.includes('-')
}

const numbersOf = (version: string): number[] => version.split('-', 1).join('').split('.').map(Number)
