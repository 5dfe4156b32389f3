/** Debian root folders made by `debootstrap`, for trying an installation as on a new machine. */
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { aptInstall } from './apt.mjs'
import { findProgram, run } from './processes.mjs'
import { SetupError, say } from './say.mjs'

const MIRROR = 'http://deb.debian.org/debian'
/** The machine's certificate authorities, which npm in the root may need to pass a proxy. */
const AUTHORITIES = process.env.NODE_EXTRA_CA_CERTS
const LENT_AT = '/run/lent-authorities.crt'

/** Runs a command and returns its output; refuses any exit code but 0. */
export async function must(command, args, options = {}) {
  const { code, output } = await run(command, args, { quiet: true, ...options })
  if (code === 0) return output
  throw new SetupError(`${command} ${args.join(' ').slice(0, 300)} ended with ${code}:\n${output.slice(-4000)}`)
}

/** Refuses to go on unless this is root on Debian; installs the programs that are missing. */
export async function needRoot(...packages) {
  if (process.getuid?.() !== 0) throw new SetupError('this needs root, for debootstrap and namespaces.')
  if (!findProgram('debootstrap')) await aptInstall(['debootstrap', ...packages])
  else if (packages.length > 0) await aptInstall(packages)
}

/** Makes a Debian root with Node and npm from the npm packages `node` and `npm`, like the image `node:<major>-slim`. */
export async function makeRoot(folder, { debian, major, packages = [] }) {
  say(`making Debian ${debian} with Node ${major}`)
  const included = packages.length > 0 ? [`--include=${packages.join(',')}`] : []
  await must('debootstrap', ['--variant=minbase', ...included, debian, folder, MIRROR])
  const program = join(folder, 'opt/node')
  mkdirSync(program, { recursive: true })
  await must('npm', ['install', '--prefix', program, `node@${major}`, 'npm@10'])
  const modules = '/opt/node/node_modules'
  symlinkSync(`${modules}/node/bin/node`, join(folder, 'usr/local/bin/node'))
  symlinkSync(`${modules}/npm/bin/npm-cli.js`, join(folder, 'usr/local/bin/npm'))
  symlinkSync(`${modules}/npm/bin/npx-cli.js`, join(folder, 'usr/local/bin/npx'))
}

/** Copies the machine's network settings into a root. */
export function lendNetwork(root) {
  mkdirSync(join(root, 'run'), { recursive: true })
  for (const file of ['/etc/resolv.conf', '/etc/hosts']) {
    if (existsSync(file)) cpSync(file, join(root, file), { dereference: true })
  }
  if (AUTHORITIES) cpSync(AUTHORITIES, join(root, LENT_AT), { dereference: true })
}

/** Variables as arguments of `env`. */
export const assignments = (env) => Object.entries(env).map(([name, value]) => `${name}=${value}`)

/** Runs a shell command in a root, as root, with an environment of its own. */
export async function runInRoot(root, command, { env, workdir = '/' }) {
  say(`in the root: ${command.slice(0, 90)}`)
  const all = assignments({ ...env, HOME: '/root', ...(AUTHORITIES && { NODE_EXTRA_CA_CERTS: LENT_AT }) })
  const mounts = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
  const inRoot = ['env', '-i', ...all, '/bin/sh', '-c', `cd '${workdir}' && ${command}`]
  await must('unshare', ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-ec', mounts, root, ...inRoot])
}

/** Refuses to go on unless something holds. */
export function check(isTrue, what, found) {
  if (!isTrue) throw new SetupError(`expected: ${what}; found: ${String(found).slice(0, 2000)}`)
  say(`ok: ${what}`)
}

/**
 * Does what a user does first: reads the credentials, creates a database, counts in it. Prints `visits <number>`.
 * @param exec runs a command where the server is, as a user who may read its data directory.
 * @param number how often the server has started.
 */
export async function visit(exec, number) {
  const exported = await exec(['homeport', 'env'])
  check(exported.code === 0, '`homeport env` finds the running server', exported.output)
  const program = `eval "$(homeport env)" && export HOMEPORT_API_KEY HOMEPORT_EMAIL && node --input-type=module -e "$0"`
  const { output } = await exec(['sh', '-c', program, visitorOf(number)])
  check(output.includes(`visits ${number}`), `a database counts visit ${number}`, output)
}

const visitorOf = (number) => `
  const { HOMEPORT_API_KEY: key, HOMEPORT_EMAIL: email } = process.env
  const api = 'http://127.0.0.1:8700/v2/redis'
  const headers = { authorization: 'Basic ' + btoa(email + ':' + key) }
  const json = async (url, init) => (await fetch(url, { headers, ...init })).json()
  const body = JSON.stringify({ database_name: 'first', platform: 'aws', primary_region: 'us-east-1' })
  if (${number} === 1) await json(api + '/database', { method: 'POST', body })
  const [{ database_id: id }] = await json(api + '/databases')
  const { rest_token: token } = await json(api + '/database/' + id)
  const authorization = 'Bearer ' + token
  const command = { method: 'POST', headers: { authorization }, body: '["INCR", "visits"]' }
  console.log('visits', (await json('http://127.0.0.1:8701', command)).result)
`
