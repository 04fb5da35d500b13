/** What is said to the user in notifications: whatever is quoted in them is text. */

import { window } from "vscode";
import { plain } from "./plain";

export const notices = {
  inform: (message: string, ...buttons: string[]) => window.showInformationMessage(plain(message), ...buttons),
  warn: (message: string, ...buttons: string[]) => window.showWarningMessage(plain(message), ...buttons),
  fail: (message: string, ...buttons: string[]) => window.showErrorMessage(plain(message), ...buttons),
};
