import { AsyncLocalStorage } from 'node:async_hooks'
import { type Browser, type BrowserContext, chromium, type Page, type Route } from 'playwright-core'
import { atCleanup, type RunningHomeport } from '../../support/index.js'

/** The deadline for a page to show its content, milliseconds: for the slowest machine, not a performance target. */
export const DEADLINE_MS = 60_000
/** The narrowest supported desktop window. */
export const DESKTOP = { width: 1280, height: 800 }
/** A phone in portrait orientation. */
export const PHONE = { width: 390, height: 844 }

const FLAGS = [
  // Without its sandbox, the browser also runs as root and in containers; it opens only our own pages.
  '--no-sandbox',
  '--disable-gpu',
  // No page lives long enough to gain from code that V8 optimizes on other threads.
  '--js-flags=--max-optimized-bytecode-size=0',
]

const FINDER = new URL('../../../scripts/lib/browser.mjs', import.meta.url).href

/** A browser that is signed in to the console with the first account. */
export interface SignedIn {
  readonly context: BrowserContext
  readonly page: Page
  /** Exceptions and errors on the browser's console so far, such as blocked scripts. */
  readonly complaints: readonly string[]
  /** Reads that the server has refused so far: status and path. */
  readonly refused: readonly string[]
  /** Reloads the console with a page, and waits for the page's title. Takes five times the processor time of `enter`. */
  load(path: string, title: string | RegExp): Promise<void>
  /** Leaves the page, so that nothing of its state is left, and enters another one or the same. */
  enter(path: string, title: string | RegExp): Promise<void>
  /** Goes to a page as a link of the console does. The page may show data of the last two seconds. */
  visit(path: string, title: string | RegExp): Promise<void>
}

/** The browser of this process, in which each test file has a context of its own. It ends with the process. */
let shared: Browser | undefined

/** The browser of this process; started once, because that takes half a second of processor time. */
export async function sharedBrowser(): Promise<Browser> {
  withoutHooksAfterwards()
  if (!shared?.isConnected()) shared = await launchBrowser()
  return shared
}

/**
 * The driver keeps what it does in an `AsyncLocalStorage`. From its first use on, Node 20 calls a hook for each promise of the
 * process, which test files that follow in this process would pay for; so the storage is disabled at cleanup.
 */
function withoutHooksAfterwards(): void {
  const { run } = AsyncLocalStorage.prototype
  const used = new Set<AsyncLocalStorage<unknown>>()
  AsyncLocalStorage.prototype.run = function <Result>(this: AsyncLocalStorage<unknown>, ...args: unknown[]): Result {
    used.add(this)
    return Reflect.apply(run, this, args)
  }
  atCleanup(() => {
    AsyncLocalStorage.prototype.run = run
    for (const storage of used) storage.disable()
  })
}

/** Starts the system's browser. */
export async function launchBrowser(): Promise<Browser> {
  const { findBrowser }: { findBrowser: () => string | undefined } = await import(FINDER)
  const executablePath = findBrowser()
  if (executablePath === undefined) throw new Error('no Chromium is installed; "npm test" installs one, or says how')
  return await chromium.launch({ executablePath, args: FLAGS })
}

/** Signs in with a new context by typing e-mail and key, as a user would. */
export async function signIn(homeport: Pick<RunningHomeport, 'apiUrl' | 'credentials'>): Promise<SignedIn> {
  const browser = await sharedBrowser()
  const context = await newContext(browser, homeport.apiUrl)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const page = await context.newPage()
  const complaints = watch(page)
  const load = async (path: string, title: string | RegExp) => {
    await page.goto(path)
    await heading(page, title).waitFor()
  }
  const visit = (path: string, title: string | RegExp) => follow(page, path, title)
  const enter = async (path: string, title: string | RegExp) => {
    await visit('/nowhere', 'Page not found')
    await visit(path, title)
  }
  await signInAt(page, homeport)
  const refused: string[] = []
  page.on('response', (response) => {
    const isRead = response.request().method() === 'GET'
    if (isRead && response.status() >= 400) refused.push(`${response.status()} ${new URL(response.url()).pathname}`)
  })
  return { context, page, complaints, refused, load, enter, visit }
}

/** Goes to a page of the console as a link does, and waits for its title. */
export async function follow(page: Page, path: string, title: string | RegExp): Promise<void> {
  // As a string: this file is compiled for Node.js, while this script runs in the page.
  await page.evaluate(`history.pushState({}, '', ${JSON.stringify(path)})`)
  await heading(page, title).waitFor()
}

/** Cookies and pages of their own in a browser; closed at cleanup. */
export async function newContext(browser: Browser | null, baseURL: string): Promise<BrowserContext> {
  if (browser === null) throw new Error('the browser has ended')
  const context = await browser.newContext({ viewport: DESKTOP, baseURL, reducedMotion: 'reduce' })
  atCleanup(() => context.close())
  context.setDefaultTimeout(DEADLINE_MS)
  await context.addInitScript(STILL)
  return context
}

/** Ends transitions and animations at once in every page: each frame of them would be painted. */
const STILL = `{
  const still = new CSSStyleSheet()
  still.replaceSync('*, *::before, *::after { transition: none !important; animation: none !important }')
  document.adoptedStyleSheets.push(still)
}`

/** Signs in to the console of a server in an existing page. */
export async function signInAt(
  page: Page,
  { apiUrl, credentials }: Pick<RunningHomeport, 'apiUrl' | 'credentials'>,
): Promise<void> {
  await page.goto(`${apiUrl}/sign-in`)
  await page.getByLabel('E-mail').fill(credentials.email)
  await page.getByLabel('API key').first().fill(credentials.apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await heading(page, 'Home').waitFor()
}

/** Lets the server do what the next request to a path asks for, and loses its answer. */
export const loseAnswer = (page: Page, path: string): Promise<unknown> =>
  page.route(
    path,
    async (request: Route) => {
      await request.fetch()
      await request.abort()
    },
    { times: 1 },
  )

/** The title of the page. */
export const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name })

/** Collects errors of the pages. Error responses of the server are not among them: the pages show those. */
function watch(page: Page): string[] {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !/^Failed to load resource: (the server responded|net::ERR_FAILED)/.test(text))
      complaints.push(text)
  })
  return complaints
}
