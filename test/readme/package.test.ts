import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { run, tempDir } from '../support/index.js'
import { followReadme } from './walk.js'

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url))
const MIB = 2 ** 20
/** The compiled SQLite driver. npm would download or compile it, which takes a minute. */
const DRIVER = 'node_modules/better-sqlite3/build/Release/better_sqlite3.node'

/** Packs the checkout and installs the tarball into an empty project, with an empty npm cache. */
async function installPackage(): Promise<string> {
  const [packed, project, cache] = [tempDir(), tempDir(), tempDir()]
  const npm = async (cwd: string, ...args: string[]) => {
    const settings = { npm_config_cache: cache, npm_config_audit: 'false', npm_config_fund: 'false' }
    const authorities = process.env.HOMEPORT_TEST_AUTHORITIES
    const env = { ...settings, ...(authorities !== undefined && { NODE_EXTRA_CA_CERTS: authorities }) }
    const { code, stdout, stderr } = await run('npm', args, { cwd, env, deadlineMs: 110_000 })
    expect(code, stderr).toBe(0)
    return stdout
  }
  // The build is up to date since the tests began, so packing need not build again.
  await npm(CHECKOUT, 'pack', '--ignore-scripts', '--pack-destination', packed)
  const [tarball = ''] = readdirSync(packed)
  writeFileSync(join(project, 'package.json'), '{"private": true}')
  await npm(project, 'install', '--ignore-scripts', join(packed, tarball))
  mkdirSync(join(project, DRIVER, '..'), { recursive: true })
  // A Node with its own SQLite driver needs no package.
  if (existsSync(join(CHECKOUT, DRIVER))) cpSync(join(CHECKOUT, DRIVER), join(project, DRIVER))
  return project
}

const sizeOf = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)

describe('the npm package', () => {
  let project = ''
  beforeAll(async () => {
    project = await installPackage()
  })

  it('installs less than 90 MB and one optional dependency', () => {
    expect(sizeOf(join(project, 'node_modules')) / MIB).toBeLessThan(90)
    const manifest = join(project, 'node_modules/homeport/package.json')
    const { dependencies, optionalDependencies } = JSON.parse(readFileSync(manifest, 'utf8'))
    expect([dependencies, Object.keys(optionalDependencies)]).toEqual([undefined, ['better-sqlite3']])
  })

  it('has the command, and no sources or tests', async () => {
    const files = readdirSync(join(project, 'node_modules/homeport')).sort()
    expect(files).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'dist', 'examples', 'package.json'])
    const { stdout } = await run(join(project, 'node_modules/.bin/homeport'), ['--version'], { cwd: project })
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\s*$/)
  })

  it('has homeport/testing', async () => {
    const program = `
      const { startHomeport } = require('homeport/testing')
      startHomeport().then(async (homeport) => {
        console.log((await fetch(homeport.env.QSTASH_URL + '/health')).status)
        await homeport.stop()
      })`
    const { code, stdout, stderr } = await run(process.execPath, ['-e', program], { cwd: project })
    expect([code, stdout.trim(), stderr]).toEqual([0, '200', ''])
  })

  followReadme('the README with the package', async () => {
    cpSync(join(project, 'node_modules/homeport/examples'), join(project, 'examples'), { recursive: true })
    // The examples use the official clients, which an application installs for itself.
    symlinkSync(join(CHECKOUT, 'node_modules/@upstash'), join(project, 'node_modules/@upstash'))
    return { program: join(project, 'node_modules/homeport/dist/main.js'), folder: project }
  })
})
