import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { parseAllDocuments, parse as parseYaml } from 'yaml'
import { loadConfig, unknownEnvironment } from '../../src/config/index.js'
import { run, tempDir } from '../support/index.js'

/** The files of `deploy/` without a container engine or a cluster: they parse, and name what exists. */

const PROJECT = fileURLToPath(new URL('../..', import.meta.url))
const DEPLOY = join(PROJECT, 'deploy')
/** Where the types of a kind of object stand in kubernetes-types. */
const PLACES = { Namespace: 'core/v1', Secret: 'core/v1', Service: 'core/v1', StatefulSet: 'apps/v1' } as const

/** The documents of a YAML file. */
function documents(path: string): unknown[] {
  return parseAllDocuments(readFileSync(join(DEPLOY, path), 'utf8')).map((document) => {
    expect([...document.errors, ...document.warnings], path).toEqual([])
    return document.toJS()
  })
}

/** Compiles the objects as values of the types that are made from the schemas of Kubernetes: unknown fields are errors. */
async function typeErrors(objects: readonly { kind: keyof typeof PLACES }[]): Promise<string> {
  const file = join(tempDir(), 'manifest.ts')
  const types = join(PROJECT, 'node_modules/kubernetes-types')
  const lines = objects.map((object, index) => {
    const type = `import(${JSON.stringify(`${types}/${PLACES[object.kind]}`)}).${object.kind}`
    return `export const object${index}: ${type} = ${JSON.stringify(object)}\n`
  })
  writeFileSync(file, lines.join(''))
  const compiler = join(PROJECT, 'node_modules/typescript/bin/tsc')
  const options = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--types', '']
  const modules = ['--module', 'esnext', '--moduleResolution', 'bundler']
  const { code, stdout } = await run(process.execPath, [compiler, ...options, ...modules, file])
  return code === 0 ? '' : stdout
}

interface StatefulSet {
  readonly kind: 'StatefulSet'
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly securityContext: { readonly runAsUser: number }
        readonly volumes: readonly { readonly name: string }[]
        readonly containers: readonly {
          readonly volumeMounts: readonly { name: string; mountPath: string }[]
          readonly env: readonly { name: string; value: string }[]
        }[]
      }
    }
    readonly volumeClaimTemplates: readonly { readonly metadata: { readonly name: string } }[]
  }
}

it('deploy/ has Kubernetes manifests that follow the schemas, with every volume that is mounted', async () => {
  const objects = documents('kubernetes/homeport.yaml') as { kind: keyof typeof PLACES }[]
  expect(objects.map(({ kind }) => kind)).toEqual(Object.keys(PLACES))
  expect(await typeErrors(objects)).toBe('')
  expect(await typeErrors([{ kind: 'Service', spec: { port: 1 } } as never])).toContain('does not exist in type')

  const { spec } = objects[3] as unknown as StatefulSet
  const { containers, volumes, securityContext } = spec.template.spec
  const names = [...volumes, ...spec.volumeClaimTemplates.map(({ metadata }) => metadata)].map(({ name }) => name)
  expect(containers[0]?.volumeMounts.map(({ name }) => name).sort()).toEqual(names.sort())
  const image = readFileSync(join(PROJECT, 'Dockerfile'), 'utf8')
  expect(image).toContain(`useradd --uid ${securityContext.runAsUser} `)
  expect(containers[0]?.volumeMounts.map(({ mountPath }) => mountPath)).toContain(/^VOLUME (.*)$/m.exec(image)?.[1])
})

interface Compose {
  readonly services: Readonly<
    Record<string, { readonly volumes?: readonly string[]; readonly environment?: Readonly<Record<string, string>> }>
  >
  readonly volumes?: Readonly<Record<string, unknown>>
}

it('deploy/ has compose files that mount only files and volumes that exist', () => {
  const files = readdirSync(DEPLOY).filter((name) => name.startsWith('compose'))
  expect(files).toContain('compose.yaml')
  for (const name of files) {
    const [{ services, volumes = {} }] = documents(name) as [Compose]
    for (const source of Object.values(services).flatMap((service) => service.volumes ?? [])) {
      const [from = ''] = source.split(':')
      const isFile = from.startsWith('.')
      expect(isFile ? existsSync(join(DEPLOY, from)) : from in volumes, `${name}: ${source}`).toBe(true)
    }
  }
})

it('the container runs with settings under which clients reach its databases: no proxy terminates TLS for them', () => {
  const image = readFileSync(join(PROJECT, 'Dockerfile'), 'utf8').matchAll(/\b(HOMEPORT_\w+)=(\S+)/g)
  const ofImage = Object.fromEntries([...image].map(([, name = '', value = '']) => [name, value]))
  expect(ofImage).toMatchObject({ HOMEPORT_HOST: '0.0.0.0', HOMEPORT_PROXY_TERMINATES_TLS: 'true' })
  const [compose] = documents('compose.yaml') as [Compose]
  const set = documents('kubernetes/homeport.yaml')[3] as StatefulSet
  const variables = set.spec.template.spec.containers[0]?.env.map(({ name, value }) => [name, value]) ?? []
  const workflow = parseYaml(readFileSync(join(PROJECT, 'examples/ci/github-service.yaml'), 'utf8'))
  const environments: Readonly<Record<string, string>>[] = [
    compose.services.homeport?.environment ?? {},
    Object.fromEntries(variables),
    workflow.jobs.test.services.homeport.env,
  ]
  for (const environment of environments) {
    const env = { ...ofImage, ...environment }
    expect(unknownEnvironment(env)).toEqual([])
    expect(loadConfig({ env })).toMatchObject({ redisTlsByDefault: false })
  }
})

it('the example of a cluster has a configuration under which clients reach databases through HAProxy', () => {
  const path = join(PROJECT, 'examples/cluster/homeport.config.json')
  const config = loadConfig({ file: { path, content: JSON.parse(readFileSync(path, 'utf8')) } })
  expect(config).toMatchObject({ redisTlsByDefault: true, publicRedisHost: new URL(config.publicApiUrl).hostname })
  const { from, to } = config.redisPorts
  expect(readFileSync(join(PROJECT, 'examples/cluster/haproxy.cfg'), 'utf8')).toContain(`bind :${from}-${to}`)
})

it('deploy/ has a systemd unit that systemd accepts', async (context) => {
  const found = await run('systemd-analyze', ['--version']).catch(() => undefined)
  if (found?.code !== 0) return context.skip('this machine has no systemd-analyze')
  const { code, stderr } = await run('systemd-analyze', ['verify', join(DEPLOY, 'systemd/homeport.service')])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})
