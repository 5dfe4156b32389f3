/** Reads a Dockerfile. Supports only the instructions that ours uses, and refuses others by name. */
import { SetupError } from './say.mjs'

/**
 * The instructions of a Dockerfile in order, each as its name and its text. Comment lines are dropped, also those within a
 * continued instruction, and continued lines are joined.
 */
function instructionsOf(text) {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !/^\s*#/.test(line))
  const joined = lines.join('\n').replaceAll(/\\\n\s*/g, '')
  return joined.split('\n').map((line) => {
    const [, name = '', rest = ''] = /^(\S+)\s+(.*)$/.exec(line) ?? []
    return { name: name.toUpperCase(), rest: rest.trim() }
  })
}

const pairsOf = (rest) => rest.split(/\s+/).map((pair) => pair.split(/=(.*)/s).slice(0, 2))

/** What each instruction adds to its stage. */
const HANDLERS = {
  ENV: (stage, rest) => stage.steps.push({ kind: 'env', pairs: pairsOf(rest) }),
  RUN: (stage, rest) => stage.steps.push({ kind: 'run', command: rest }),
  WORKDIR: (stage, rest) => stage.steps.push({ kind: 'workdir', path: rest }),
  COPY: (stage, rest) => {
    const { from, paths } = /^(?:--from=(?<from>\S+)\s+)?(?<paths>.*)$/.exec(rest).groups
    const [source, target] = paths.split(/\s+/)
    stage.steps.push({ kind: 'copy', from, source, target })
  },
  USER: (stage, rest) => Object.assign(stage, { user: rest }),
  VOLUME: (stage, rest) => Object.assign(stage, { volume: rest }),
  STOPSIGNAL: (stage, rest) => Object.assign(stage, { stopSignal: rest }),
  EXPOSE: () => {},
  HEALTHCHECK: (stage, rest) => Object.assign(stage, { healthCheck: JSON.parse(rest.slice(rest.indexOf('['))) }),
  ENTRYPOINT: (stage, rest) => Object.assign(stage, { entrypoint: JSON.parse(rest) }),
  CMD: (stage, rest) => Object.assign(stage, { command: JSON.parse(rest) }),
}

/**
 * The stages of a Dockerfile in order.
 * @returns {{image: string, name?: string, steps: object[], user?: string, volume?: string, stopSignal?: string,
 *   healthCheck?: string[], entrypoint?: string[], command?: string[]}[]}
 */
export function readDockerfile(text) {
  const stages = []
  for (const { name, rest } of instructionsOf(text)) {
    if (name === 'FROM') {
      const [image, , as] = rest.split(/\s+/)
      stages.push({ image, name: as, steps: [] })
      continue
    }
    const handler = HANDLERS[name]
    if (!handler) throw new SetupError(`Dockerfile: this program does not know the instruction ${name}.`)
    handler(stages.at(-1), rest)
  }
  return stages
}
