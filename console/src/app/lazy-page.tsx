import { type ComponentType, lazy, type ReactNode } from 'react'

/** Waits before the second and the third attempt, milliseconds. */
const RETRY_AFTER_MS = [300, 1_200]
const ANSWER_WITHIN_MS = 5_000
/** Key of the last build for which the console was reloaded. It reloads only once for each build. */
const RELOADED_FOR = 'homeport-reloaded-for'

/** The code of a page could not be loaded. */
export class CodeNotLoaded extends Error {
  /** Loads the code again. After that, the page can be rendered again. */
  readonly retry: () => Promise<void>

  constructor(cause: unknown, retry: () => Promise<void>) {
    super('The code of this page could not be loaded. Check that the server is reachable, then try again.', { cause })
    this.retry = retry
  }
}

/** A component whose code is loaded when it is rendered, or earlier by `preload`. */
export interface LazyPage<Props> {
  (props: Props): ReactNode
  /** Loads the code; never rejects. */
  readonly preload: () => Promise<void>
}

/**
 * A page, or a part of one, whose code is loaded when it is needed. A failed load is repeated. If the load fails because
 * the server was upgraded and has other files, the console is reloaded, once for each upgrade.
 */
export function lazyPage<Name extends string, Props extends object>(
  load: () => Promise<Readonly<Record<Name, ComponentType<Props>>>>,
  name: Name,
): LazyPage<Props> {
  let loading: Promise<{ default: ComponentType<Props> }> | undefined
  const loadOnce = () => {
    loading ??= loadWithRetries(load).then(
      (module) => ({ default: module[name] }),
      (error: unknown) => {
        loading = undefined
        throw new CodeNotLoaded(error, retry)
      },
    )
    return loading
  }
  let Current = lazy(loadOnce)
  const retry = async (): Promise<void> => {
    Current = lazy(loadOnce)
    await preload()
  }
  const preload = (): Promise<void> =>
    loadOnce().then(
      () => undefined,
      () => undefined,
    )
  // biome-ignore lint/correctness/noComponentHookFactories: each page is made once, where its module is loaded.
  const Page = (props: Props): ReactNode => <Current {...props} />
  return Object.assign(Page, { preload })
}

/**
 * Loads a module; repeats a failed load. If the load fails because the server was upgraded, the console is reloaded, and
 * the promise stays pending.
 * @throws what the last load threw.
 */
export async function loadWithRetries<Module>(load: () => Promise<Module>): Promise<Module> {
  for (const ms of RETRY_AFTER_MS) {
    try {
      return await load()
    } catch {
      await new Promise((resolve) => setTimeout(resolve, ms))
    }
  }
  try {
    return await load()
  } catch (error) {
    if (await reloadsForUpgrade()) return new Promise(() => undefined)
    throw error
  }
}

/** Reloads the console if the server has another build of it. */
async function reloadsForUpgrade(): Promise<boolean> {
  const build = await buildOfServer().catch(() => undefined)
  const own = document.querySelector('script[type="module"][src]')?.getAttribute('src')
  if (build === undefined || build === own || sessionStorage.getItem(RELOADED_FOR) === build) return false
  sessionStorage.setItem(RELOADED_FOR, build)
  window.location.reload()
  return true
}

/** The main script of the console that the server has now; its name contains its digest. */
async function buildOfServer(): Promise<string | undefined> {
  const response = await fetch('/', { cache: 'no-store', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
  const found = new DOMParser().parseFromString(await response.text(), 'text/html')
  return found.querySelector('script[type="module"][src]')?.getAttribute('src') ?? undefined
}
