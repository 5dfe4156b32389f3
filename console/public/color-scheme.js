// Runs before the first paint, so that a dark page never flashes light. A separate file: the content security policy
// forbids inline scripts.
try {
  const chosen = localStorage.getItem('homeport-color-scheme')
  const isDark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.setAttribute('data-mantine-color-scheme', isDark ? 'dark' : 'light')
} catch {
  // Without local storage, the page starts light.
}
