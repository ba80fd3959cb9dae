/** Pages that are only read. */
import { wireTheme } from '../ui/theme.js';

wireTheme(() => {});
