import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { atCleanup, type RunningHomeport } from '../../support/index.js'

/** How long a page may take to show what it should, milliseconds; a deadline for the slowest machine, not a measure. */
export const DEADLINE_MS = 30_000
/** What the narrowest supported desktop window and a phone show. */
export const DESKTOP = { width: 1280, height: 800 }
/** A phone held upright. */
export const PHONE = { width: 390, height: 844 }

const FINDER = new URL('../../../scripts/lib/browser.mjs', import.meta.url).href

/** A browser in which the first account of a server is signed in to its console. */
export interface SignedIn {
  readonly context: BrowserContext
  readonly page: Page
  /** What the pages have complained about so far: exceptions, and errors on the console such as refused scripts. */
  readonly complaints: readonly string[]
  /** Opens a page of the console by its address and waits for its title. */
  open(path: string, title: string | RegExp): Promise<void>
}

/** Starts the system's browser; it is closed at cleanup. */
export async function launchBrowser(): Promise<Browser> {
  const { findBrowser }: { findBrowser: () => string | undefined } = await import(FINDER)
  const executablePath = findBrowser()
  if (executablePath === undefined) throw new Error('no Chromium is installed; "npm test" installs one, or says how')
  // Without its own sandbox it also runs as root and in containers; it sees nothing but our own pages.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  atCleanup(() => browser.close())
  return browser
}

/** Opens a browser of its own and signs in by typing e-mail and key, as a person would. */
export async function signIn(homeport: RunningHomeport): Promise<SignedIn> {
  const browser = await launchBrowser()
  const context = await browser.newContext({ viewport: DESKTOP, baseURL: homeport.apiUrl, reducedMotion: 'reduce' })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  context.setDefaultTimeout(DEADLINE_MS)
  const page = await context.newPage()
  const complaints = watch(page)
  const open = async (path: string, title: string | RegExp) => {
    await page.goto(path)
    await heading(page, title).waitFor()
  }
  await signInAt(page, homeport)
  return { context, page, complaints, open }
}

/** Signs in to the console of a server in a page that there is. */
export async function signInAt(page: Page, { apiUrl, credentials }: RunningHomeport): Promise<void> {
  await page.goto(`${apiUrl}/sign-in`)
  await page.getByLabel('E-mail').fill(credentials.email)
  await page.getByLabel('API key').first().fill(credentials.apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await heading(page, 'Home').waitFor()
}

/** The title of the page. */
export const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name })

/** Collects what goes wrong inside of the pages. A refusal of the server is shown there and is no fault of theirs. */
function watch(page: Page): string[] {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !/^Failed to load resource: the server responded/.test(text))
      complaints.push(text)
  })
  return complaints
}

/**
 * What is wrong with the page as it is shown: for people who cannot see it or use a mouse (axe, in both looks), and for
 * everybody when it is wider than the window. An empty list is what it should be.
 */
export async function problemsOf(page: Page): Promise<string[]> {
  const light = await axeProblems(page, 'light', 'preload: false')
  // Everything but the colours is the same in both looks.
  const dark = await axeProblems(page, 'dark', "runOnly: ['color-contrast']")
  await page.emulateMedia({ colorScheme: 'light' })
  return [...light, ...dark, ...(await tooWide(page))]
}

async function axeProblems(page: Page, colorScheme: 'light' | 'dark', options: string): Promise<string[]> {
  await page.emulateMedia({ colorScheme })
  await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor({ state: 'attached' })
  await page.evaluate(SETTLED)
  // Half a megabyte to read: once a document is enough.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source)
  // As texts: what runs in the page is not of the world that this file is compiled for.
  const violations = await page.evaluate<Violation[]>(
    `axe.run(document, { ${options}, ${LEAN} }).then(({ violations }) => violations.map(({ id, nodes }) =>
      ({ id, at: nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary) })))`,
  )
  return violations.flatMap(({ id, at }) => at.slice(0, 3).map((where) => `${colorScheme}: ${id} at ${where}`))
}

/** Nothing is worked out that nobody reads: what passes, where it is in frames, and selectors of it. */
const LEAN = "resultTypes: ['violations'], iframes: false, selectors: false"

/** Colours on their way from one look to the other are of neither. What turns forever is not waited for. */
const SETTLED = `Promise.all(document.getAnimations()
  .filter((animation) => animation.effect.getComputedTiming().iterations < 10)
  .map((animation) => animation.finished.catch(() => undefined)))`

interface Violation {
  readonly id: string
  readonly at: readonly string[]
}

/** What is wider than the window; an empty list is what it should be. */
export async function tooWide(page: Page): Promise<string[]> {
  const excess = await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
  return excess > 0 ? [`the page is ${excess} px wider than the window`] : []
}
