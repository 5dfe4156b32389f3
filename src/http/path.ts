/** A path of an endpoint, taken apart: how the router is to know it and what the raw rest of it is. */
export interface PathPattern {
  /** The path for the router: `:name` for parameters; a raw rest stands as the fixed segment `-`. */
  readonly routerPath: string
  /** Matches the path of a request target, without its query. */
  readonly matches: (path: string) => boolean
  /** For paths that end in `{+name}`: finds the raw rest of a request target, query included. */
  readonly rest?: {
    readonly name: string
    readonly find: (target: string) => { routerTarget: string; rest: string } | undefined
  }
}

const PARAMETER = /\{(\+?)(\w+)\}/g

/** Takes the path of an endpoint apart. */
export function parsePath(path: string): PathPattern {
  const raw = /\{\+(\w+)\}$/.exec(path)
  const routerPath = path.replace(PARAMETER, (_whole, plus: string, name: string) => (plus ? '-' : `:${name}`))
  const source = path.replace(/[.]/g, '\\.').replace(PARAMETER, (_whole, plus: string) => (plus ? '.*' : '[^/]+'))
  const whole = new RegExp(`^${source}$`)
  const matches = (candidate: string): boolean => whole.test(candidate)
  const name = raw?.[1]
  if (name === undefined) return { routerPath, matches }
  const prefix = path.slice(0, raw?.index).replace(PARAMETER, '[^/?]+')
  const split = new RegExp(`^(${prefix})([\\s\\S]*)$`)
  const find = (target: string): { routerTarget: string; rest: string } | undefined => {
    const found = split.exec(target)
    return found ? { routerTarget: `${found[1]}-`, rest: found[2] ?? '' } : undefined
  }
  return { routerPath, matches, rest: { name, find } }
}
