import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { codeOf } from '../base/index.js'
import { type Config, flagName } from '../config/index.js'
import { HomeportError, isError } from '../contract/errors/errors.js'

/** The error of a command that was called wrongly. */
export const misused = (problem: string, options?: ErrorOptions): HomeportError =>
  new HomeportError('cli_misused', { problem }, options)

/** The error of a command that could not do its work. */
export const failedWith = (problem: string, options?: ErrorOptions): HomeportError =>
  new HomeportError('cli_failed', { problem }, options)

/** The error of a command whose arguments name something that does not exist. */
export const notFound = (problem: string, options?: ErrorOptions): HomeportError =>
  new HomeportError('cli_not_found', { problem }, options)

/** The error of a command that finds no credentials of the first account in a data directory. */
export function noCredentialsAt(path: string): HomeportError {
  const others = existsSync(join(dirname(path), 'store-id'))
    ? 'Another server, such as another node, created the first account: run this command there, or `homeport login` with an API key. If the credentials are lost, stop this server and run `homeport credentials reset`.'
    : 'Start the server once (npm start), set its --data-dir, or create a profile of another server with `homeport login`.'
  return new HomeportError('cli_no_credentials', { problem: `There are no credentials at ${path}. ${others}` })
}

/** Describes an error in one sentence: what is wrong, what was found, what to do. */
export function describeError(error: unknown, config?: Config): string {
  if (isError(error, 'port_taken')) {
    const { port } = error.details
    return codeOf(error.cause) === 'EACCES' ? portForbidden(port) : portTaken(port, config)
  }
  if (error instanceof HomeportError) return error.message + causeOf(error)
  if (error instanceof AggregateError) return error.errors.map((one) => describeError(one, config)).join('; ')
  const fromSystem = hasCode(error) ? systemErrorText(error, config) : undefined
  return fromSystem ?? (error instanceof Error ? error.message : String(error))
}

/** Describes a known error of the operating system; `undefined` for others. */
function systemErrorText(error: SystemError, config: Config | undefined): string | undefined {
  const { port, path, address, hostname, syscall } = error
  switch (error.code) {
    case 'EADDRINUSE':
      return portTaken(port, config)
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
      return `This machine does not have the address ${address}. Correct --host, or start again once its network is up.`
    case 'EACCES':
    case 'EPERM':
      if (port !== undefined) return portForbidden(port)
      return path === undefined ? undefined : pathForbidden(path, config)
    case 'EMFILE':
      return 'This process may not open more files. Raise the limit (`ulimit -n`, LimitNOFILE of systemd) and try again.'
    case 'ENFILE':
      return 'The machine has too many open files (sysctl fs.file-max). End other programs, or raise its limit.'
    case 'ENOSPC':
      return DISK_FULL
    case 'ENOENT':
      return syscall === 'uv_cwd' ? NO_FOLDER : undefined
    default:
      return syscall === 'getaddrinfo' ? nameUnknown(hostname ?? '', error.code) : undefined
  }
}

/** The message of PostgreSQL, which callers of the API do not get. */
function causeOf(error: HomeportError): string {
  const isOfStore = isError(error, 'store_unavailable') || isError(error, 'store_full')
  return isOfStore && error.cause instanceof Error ? ` The reason: ${error.cause.message}.` : ''
}

const DISK_FULL =
  'The disk is full, or has no inode left (`df -i`). Free space on the disk of the data directory and try again.'
const NO_FOLDER = 'The current folder does not exist any more. Change to another one and try again.'

interface SystemError extends Error {
  readonly code: string
  readonly port?: number
  readonly path?: string
  readonly address?: string
  readonly hostname?: string
  readonly syscall?: string
}

const hasCode = (error: unknown): error is SystemError => codeOf(error) !== ''

function portTaken(port: number | undefined, config: Config | undefined): string {
  const names = ['apiPort', 'restPort', 'queuePort', 'redisDomainPort'] as const
  const option = port === undefined ? undefined : names.find((name) => config?.[name] === port)
  const how = option === undefined ? 'choose another port' : `choose another port with ${flagName(option)}`
  return `Port ${port ?? ''} is in use by another program. Stop that program (\`homeport doctor\` names it), or ${how}.`
}

function portForbidden(port: number): string {
  return `This user may not listen on port ${port}. Ports below 1024 require special rights. Choose a higher port.`
}

function pathForbidden(path: string, config: Config | undefined): string {
  const hint =
    config && path.startsWith(config.dataDir)
      ? ` If another user, such as root, has run Homeport there, give the files back: chown -R <user> ${config.dataDir}`
      : ''
  return `This user may not use ${path}.${hint}`
}

function nameUnknown(name: string, code: string): string {
  return `The name ${name} cannot be resolved (${code}). Check /etc/hosts and the name servers of this machine.`
}
